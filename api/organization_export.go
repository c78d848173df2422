package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/transfer"
)

// Frozen is the state of a store that an export reads. It must be closed soon.
type Frozen interface {
	transfer.Source
	io.Closer
}

// A part of an export ends after the next row that is later than partTime, and its documents must follow within
// partMost. Until then the store cannot tidy up.
const (
	partTime = time.Minute
	partMost = 3 * time.Minute
)

// exportOrganization streams an organization as a file of writ export, or a part of it. See package transfer.
func (s *Server) exportOrganization(r *request) error {
	begun := &transfer.Begun{ID: r.query.text("export"), Last: r.query.text("last"), After: r.query.text("after")}
	if *begun == (transfer.Begun{}) {
		begun = nil
	} else {
		for name, id := range map[string]string{"export": begun.ID, "last": begun.Last, "after": begun.After} {
			if _, ok := storage.ParseID(id); !ok {
				r.query.refuse(invalid(name, "want all of export, last and after: the members id and last of "+
					"the file's header, and the decision id of its last row"))
			}
		}
	}
	if err := r.query.done(); err != nil {
		return err
	}
	if s.cfg.Freeze == nil {
		return errors.New("this server exports no organization")
	}
	keys, err := receipt.ParseKeys(s.cfg.JWKS())
	if err != nil {
		return fmt.Errorf("reading the public keys: %w", err)
	}
	end, ok := s.exports.Begin(r.who.org)
	if !ok {
		return refuseWith(problem{Code: codeTooManyExports, retryAfter: 5,
			Detail: "Too many exports are under way. Try again when one has ended."})
	}
	ctx, cancel := context.WithTimeout(s.deadlines.base, partMost)
	release := func() { cancel(); end() }
	answered := false
	defer func() {
		if !answered {
			release()
		}
	}()
	state, err := s.cfg.Freeze(ctx)
	if err != nil {
		return fmt.Errorf("reading the organization: %w", err)
	}
	var ends time.Time // from the first row on, because finding it can take long
	ended := func() bool {
		if ends.IsZero() {
			ends = time.Now().Add(partTime)
		}
		return time.Now().After(ends)
	}
	next, stop := iter.Pull2(transfer.Part(ctx, state, begun, transfer.ExportConfig{Organization: r.who.org,
		Keys: keys, Now: s.decisions.Now, Ends: ended}))
	release = sync.OnceFunc(func() {
		stop()
		if err := state.Close(); err != nil {
			s.cfg.Log.Error("an export was not closed", "error", err)
		}
		cancel()
		end()
	})
	e := &export{s: s, org: r.who.org, end: release, contentType: "application/octet-stream",
		name: "organization-" + r.now.UTC().Format(time.DateOnly) + ".ndjson"}
	e.page = func(context.Context) error {
		piece, err, more := next()
		if err != nil {
			return err
		}
		e.beginChunk()
		e.rows.buf = append(e.rows.buf, piece...)
		e.last = !more
		return nil
	}
	// The first piece is read before the response begins, so that a failing store gives a problem.
	if err := e.page(ctx); err != nil {
		return err
	}
	e.first, e.rows.buf = firstBytes(e.rows.buf)
	answered = true
	return r.ok(e)
}

// firstBytes cuts the first bytes of a chunk, which fasthttp reads, from those that follow.
func firstBytes(chunk []byte) (first, rest []byte) {
	n := len(chunkStart) + min(1024, len(chunk)-len(chunkStart))
	first = append(first, chunk[len(chunkStart):n]...)
	return first, append(chunk[:len(chunkStart)], chunk[n:]...)
}
