package transfer

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// Source is a snapshot of a store. [ledger.History] describes some of its methods.
type Source interface {
	View(ctx context.Context, f func(storage.Reader) error) error
	ListRecords(ctx context.Context, org string, f storage.Filter, p storage.Page) ([]*storage.Record, string, error)
	CountExpired(ctx context.Context, org string, before time.Time, most int) (storage.Expired, error)
	EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) error
	EachTombstone(ctx context.Context, org string, f func(*storage.Tombstone) error) error
	Chains(ctx context.Context, f func(tip receipt.Chain) error) error
}

// renewable is a [Source] that reads a state which is kept only for a while. After it reads fail with
// [storage.ErrPast], until Renew takes the present state.
type renewable interface {
	Renew(ctx context.Context) error
}

// afterAll is a time after every decision.
var afterAll = time.UnixMilli(1 << 48)

// File is a file for Export, such as an *os.File.
type File interface {
	io.ReadWriteSeeker
	Truncate(size int64) error
	Sync() error
}

// ExportConfig configures [Export].
type ExportConfig struct {
	Organization string
	// Keys are public keys of the source, in addition to the keys in its documents.
	Keys receipt.Keys
	// Now is the clock.
	Now func() time.Time
	// Progress counts rows.
	Progress ledger.Progress
	// Ends reports, after each row and from time to time among removed rows, whether a part ends: see [Part]. It may be
	// nil.
	Ends func() bool
}

func (c ExportConfig) ended() bool { return c.Ends != nil && c.Ends() }

// ErrNothing means that the source has no data of the organization.
var ErrNothing = errors.New("the store has nothing of the organization")

// Export writes an organization to f, or continues an interrupted Export. It returns the footer
// once the file is complete and durable. A complete file is not changed. Memory holds a bounded
// number of rows and at most 65,536 tombstones, for a source of any size.
func Export(ctx context.Context, src Source, f File, cfg ExportConfig) (Footer, error) {
	e := exporter{ctx: ctx, src: src, cfg: cfg, file: f, tombstones: tombstones{most: tombstoneChunk}}
	if err := e.resume(); err != nil {
		return Footer{}, err
	}
	if e.state.footer != nil {
		return *e.state.footer, nil
	}
	e.out = bufio.NewWriterSize(io.MultiWriter(f, e.sum), 1<<20)
	if err := e.write(); err != nil {
		return Footer{}, err
	}
	return *e.state.footer, nil
}

type exporter struct {
	ctx  context.Context
	src  Source
	cfg  ExportConfig
	file File

	part  bool // the export is written by [Part]
	state state
	sum   hash.Hash // hash of the bytes in the file
	out   *bufio.Writer
	total int // number of rows of the source
	tombstones
}

// resume reads the file and truncates it after the last line that can stay. That line is the
// header, a row or a removed row. If the header is incomplete, the file is written from the
// beginning.
func (e *exporter) resume() error {
	r := newReader(e.file)
	var kept state
	end := int64(0)
	for {
		l, err := r.next()
		if errors.Is(err, errPartial) && kept.header == nil && !beginsHeader(r.buf) {
			return errors.New("it is no export, and stays as it is")
		}
		if errors.Is(err, io.EOF) || errors.Is(err, errPartial) {
			break
		}
		if err == nil {
			_, err = e.state.take(r, l)
		}
		if err != nil {
			return fmt.Errorf("going on with what was exported: %w", err)
		}
		if l.Document == nil {
			kept, end = e.state, r.offset
		}
	}
	switch h := kept.header; {
	case h != nil && h.OrganizationID != e.cfg.Organization:
		return fmt.Errorf("the file is an export of organization %q", h.OrganizationID)
	case h != nil && h.Format != format && kept.footer == nil:
		return fmt.Errorf("the file was begun by another writ, which writes %s: resume it with that writ, or begin "+
			"another file", h.Format)
	}
	if e.state = kept; kept.footer != nil {
		return nil
	}
	return e.cut(end)
}

// beginsHeader reports whether part may be the beginning of a header line.
func beginsHeader(part []byte) bool {
	const header = `{"header":`
	n := min(len(part), len(header))
	return string(part[:n]) == header[:n]
}

// cut truncates the file to end bytes, and hashes them.
func (e *exporter) cut(end int64) error {
	e.sum = sha256.New()
	_, err := e.file.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.CopyN(e.sum, e.file, end)
	}
	if err == nil {
		err = e.file.Truncate(end)
	}
	if err == nil {
		_, err = e.file.Seek(end, io.SeekStart)
	}
	return err
}

func (e *exporter) write() error {
	if err := e.begin(); err != nil {
		return err
	}
	if err := e.wholeHistory(); err != nil {
		return err
	}
	if err := e.src.View(e.ctx, e.writeDocuments); err != nil {
		return err
	}
	if err := e.out.Flush(); err != nil {
		return err
	}
	return e.end()
}

// end writes the footer.
func (e *exporter) end() error {
	footer := e.state.footerOf(e.sum)
	e.state.footer = &footer
	if err := e.line(&line{Footer: e.state.footer}); err != nil {
		return err
	}
	return errors.Join(e.out.Flush(), e.file.Sync())
}

// begin writes the header, unless the file has one.
func (e *exporter) begin() error {
	// The total is only for progress. If counting takes too long, there is no total.
	if e.cfg.Progress == nil {
		e.total = 0
	} else if all, err := e.src.CountExpired(e.ctx, e.cfg.Organization, afterAll, math.MaxInt); err == nil {
		e.total = all.Records
	}
	if err := e.refill(); err != nil {
		return err
	}
	if e.state.header == nil {
		rows, _, err := e.src.ListRecords(e.ctx, e.cfg.Organization, storage.Filter{}, storage.Page{Limit: 1})
		if err != nil {
			return err
		}
		newest := e.greatest
		for _, r := range rows {
			newest = max(newest, r.DecisionID)
		}
		return e.header(newest)
	}
	return nil
}

// header writes the header.
func (e *exporter) header(last string) error {
	keys, some := e.cfg.Keys, last != ""
	var forgotten time.Time
	err := e.src.View(e.ctx, func(r storage.Reader) error {
		if _, err := storage.Imports.Get(r, e.cfg.Organization, ""); !errors.Is(err, storage.ErrNotFound) {
			if err == nil {
				err = errors.New("its import into this store is not finished: run writ import again")
			}
			return err
		}
		if err := storage.PublicKeys.Scan(r, storage.Query{}, func(_ []byte, k *storage.PublicKey) (bool, error) {
			one, err := receipt.ParseKeys([]byte(k.JWKS))
			keys = keys.With(one)
			return true, err
		}); err != nil {
			return err
		}
		var err error
		if forgotten, err = e.forgottenBefore(r); err != nil {
			return err
		}
		return eachDocument(r, e.cfg.Organization, func(*storage.Collection, storage.Document) error {
			some = true
			return nil
		})
	})
	if err != nil {
		return err
	}
	if !some && !e.part {
		return ErrNothing
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	e.state.header = &Header{
		Format: format, ID: id.String(), OrganizationID: e.cfg.Organization,
		ExportedAt: e.moment(), Last: last, Forgotten: forgotten, Keys: keys.JWKS(),
	}
	return e.line(&line{Header: e.state.header})
}

// moment returns the time as files have it.
func (e *exporter) moment() time.Time { return e.cfg.Now().UTC().Truncate(time.Millisecond) }

// wholeHistory writes rows and removed rows. If this takes longer than the source keeps a state, it goes on with the
// present one. Rows that were written stay as they were. Rows that were removed since are written as removed.
func (e *exporter) wholeHistory() error {
	src, ok := e.src.(renewable)
	for renewed := false; ; renewed = true {
		last := e.state.last
		err := e.history()
		if err == nil && renewed { // the documents get all the time for which a state is kept
			return src.Renew(e.ctx)
		}
		if !ok || !errors.Is(err, storage.ErrPast) || e.state.last == last {
			return err
		}
		if err := src.Renew(e.ctx); err != nil {
			return err
		}
		if err := e.refill(); err != nil {
			return err
		}
	}
}

// history writes rows and removed rows in the order of their ids.
func (e *exporter) history() error {
	s := &e.state
	if s.header.Last == "" {
		return nil
	}
	err := e.src.EachRow(e.ctx, e.cfg.Organization, s.last, s.header.Last, func(r *storage.Record) error {
		if err := e.removedBefore(r.DecisionID); err != nil {
			return err
		}
		s.last = r.DecisionID
		s.tree.AddRow(r)
		if e.cfg.ended() {
			err := e.line(&line{Row: r})
			return cmp.Or(err, errPartEnds)
		}
		if e.state.tree.Rows%1024 == 0 {
			e.cfg.Progress.Tell("rows", int(s.tree.Rows), e.total)
		}
		return e.line(&line{Row: r})
	})
	if err != nil {
		return err
	}
	return e.removedBefore("")
}

// removedBefore writes the removed rows before an id, or all remaining ones if id is empty.
func (e *exporter) removedBefore(id string) error {
	for {
		t, err := e.nextTombstone()
		if t == nil || err != nil || id != "" && t.DecisionID >= id || t.DecisionID > e.state.header.Last {
			return err
		}
		e.state.last = t.DecisionID
		e.state.tree.AddRemoved(t)
		if err := e.line(&line{Removed: removedOf(t)}); err != nil {
			return err
		}
		if e.some = e.some[1:]; len(e.some) == 0 && !e.all && e.cfg.ended() { // the next ones take another pass
			return errPartEnds
		}
	}
}

func (e *exporter) writeDocuments(r storage.Reader) error {
	for _, c := range carried {
		var err error
		switch c.Kind {
		case storage.DetailsKind: // a file has no approvals: see [Import]
		case storage.OriginKind:
			err = e.writeOrigins(r)
		case storage.RevisionKind:
			err = e.writeRevisions(r)
		default:
			err = eachOf(r, e.cfg.Organization, c, func(d storage.Document) error { return e.document(c, d) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) document(c *storage.Collection, d storage.Document) error {
	e.state.documents++
	return e.line(&line{Document: &document{
		Kind: c.Name, ID: base64.RawURLEncoding.EncodeToString([]byte(d.ID)), Value: slices.Clone(d.Value),
	}})
}

func (e *exporter) line(l *line) error {
	if err := json.MarshalWrite(e.out, l, json.Deterministic(true)); err != nil {
		return fmt.Errorf("writing a line: %w", err)
	}
	return e.out.WriteByte('\n')
}
