package transfer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
)

// errPartEnds ends the rows of a part.
var errPartEnds = errors.New("the part ends")

// errUnread means that nobody reads a part any more.
var errUnread = errors.New("the part is not read")

// pieceSize is about how long the pieces of a part are.
const pieceSize = 64 << 10

// Begun is an export that was begun: the members id and last of its header, and the id of its last row or removed row.
type Begun struct{ ID, Last, After string }

// Part returns the bytes of an export that follow the part that was begun, in pieces. If begun is nil, the part
// begins with a header. It ends as a file does, or with a line "part" where cfg.Ends says so. Both count the lines
// of the part, and have the digest of its lines above. A part that begins with a header and ends as a file does is
// the file. An organization without anything has an empty one.
func Part(ctx context.Context, src Source, begun *Begun, cfg ExportConfig) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		e := exporter{
			ctx: ctx, src: src, cfg: cfg, file: noFile{}, part: true, sum: sha256.New(),
			tombstones: tombstones{most: tombstoneChunk},
		}
		if begun != nil {
			e.state.header = &Header{
				ID: begun.ID, OrganizationID: cfg.Organization, Last: begun.Last,
				ExportedAt: e.moment(), // of this part, whose documents stand until now
			}
			e.state.last = begun.After
		}
		e.out = bufio.NewWriterSize(pieces(func(piece []byte) error {
			e.sum.Write(piece)
			if !yield(piece, nil) {
				return errUnread
			}
			return nil
		}), pieceSize)
		err := e.write()
		if errors.Is(err, errPartEnds) {
			if err = e.out.Flush(); err == nil {
				footer := e.state.footerOf(e.sum)
				err = errors.Join(e.line(&line{Part: &footer}), e.out.Flush())
			}
		}
		if err != nil && !errors.Is(err, errUnread) {
			yield(nil, err)
		}
	}
}

type pieces func([]byte) error

func (p pieces) Write(piece []byte) (int, error) { return len(piece), p(piece) }

// noFile is the file of an exporter of a part, which has none.
type noFile struct{ File }

func (noFile) Sync() error { return nil }

// Receive is like [Export] for a source that is read in parts. fetch returns a part: see [Part]. A part that is cut off
// is an error, and Receive continues the file.
func Receive(
	ctx context.Context, f File, org string, progress func(rows int),
	fetch func(ctx context.Context, begun *Begun) (io.ReadCloser, error),
) (Footer, error) {
	e := exporter{ctx: ctx, cfg: ExportConfig{Organization: org}, file: f}
	if err := e.resume(); err != nil {
		return Footer{}, err
	}
	if e.state.footer != nil {
		return *e.state.footer, nil
	}
	if e.state.header != nil && e.state.last == "" { // a part cannot begin after the header
		e.state = state{}
		if err := e.cut(0); err != nil {
			return Footer{}, err
		}
	}
	e.out = bufio.NewWriterSize(io.MultiWriter(f, e.sum), 1<<20)
	for whole := false; !whole; {
		var begun *Begun
		if h := e.state.header; h != nil {
			begun = &Begun{ID: h.ID, Last: h.Last, After: e.state.last}
		}
		body, err := fetch(ctx, begun)
		if err == nil {
			whole, err = e.receive(body, progress)
			err = errors.Join(err, body.Close())
		}
		if err = errors.Join(err, e.out.Flush()); err != nil {
			return Footer{}, err
		}
	}
	if e.state.tree.Rows+e.state.tree.Removed+e.state.documents == 0 {
		return Footer{}, ErrNothing
	}
	if err := e.end(); err != nil {
		return Footer{}, err
	}
	return *e.state.footer, nil
}

// receive writes the lines of a part to the file. It returns true if the part is the last.
func (e *exporter) receive(body io.Reader, progress func(rows int)) (whole bool, err error) {
	r := newReader(body)
	part := state{header: e.state.header, last: e.state.last}
	for {
		l, err := r.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errPartial) {
			return false, errors.New("the server's answer was cut off")
		}
		if err != nil {
			return false, err
		}
		if l.Part != nil {
			if want := part.footerOf(r.before); *l.Part != want {
				return false, fmt.Errorf("the server's part is of %s, and it has %s: it was changed or cut",
					l.Part, &want)
			}
			return false, nil
		}
		if _, err := part.take(r, l); err != nil {
			return false, err
		}
		if l.Footer != nil && part.last != part.header.Last {
			return false, fmt.Errorf("the server's answer ends at decision %q, and the header says that %q is the last",
				part.last, part.header.Last)
		}
		if l.Footer != nil {
			return true, nil
		}
		if h := l.Header; h != nil && h.OrganizationID != e.cfg.Organization {
			return false, fmt.Errorf("the credential is of organization %q, and %q was to be exported",
				h.OrganizationID, e.cfg.Organization)
		}
		if _, err := e.state.take(r, l); err != nil {
			return false, err
		}
		if _, err := e.out.Write(r.buf); err != nil {
			return false, err
		}
		if e.state.tree.Rows%1024 == 0 {
			progress(int(e.state.tree.Rows))
		}
	}
}
