package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"writ.example/writ/storage/ledger"
)

// A run is what one write stores. These constants bound it. Larger runs need fewer durable
// writes, and smaller runs make shorter transactions. A document takes several round trips to a
// database. All rows of a run together take three.
const (
	runRows      = 1024
	runDocuments = 64
	runBytes     = 2 << 20
)

// run counts the lines and bytes that were read but not stored yet.
type run struct{ decisions, documents, bytes int }

// endsBefore reports whether the run ends before l. It counts l in the next run if so, and
// otherwise in this run. A run has either documents or decisions.
func (r *run) endsBefore(l *line, bytes int) bool {
	ends := r.decisions >= runRows || r.documents >= runDocuments || r.bytes >= runBytes || l.Document != nil &&
		r.decisions > 0
	if ends {
		*r = run{}
	}
	switch {
	case l.Document != nil:
		r.documents++
	case l.Row != nil, l.Removed != nil:
		r.decisions++
	}
	r.bytes += bytes
	return ends
}

// errChanged means that the file differs from the file that Check has read.
var errChanged = errors.New("the file has changed since it was checked: run the import again")

// file stores the content of the file. It returns an error if the file has changed since Check.
func (i *importer) file(in io.ReadSeeker) error {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for r := newReader(in); ; {
		l, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = i.line(r, l)
		}
		if err != nil {
			return err
		}
	}
	if i.state.footer == nil || *i.state.footer != i.checked.Footer {
		return errChanged
	}
	return i.flush()
}

// line adds l to the current run. If that run ends before l, line first stores the run.
func (i *importer) line(r *reader, l *line) error {
	left, err := i.state.take(r, l)
	if err == nil && i.run.endsBefore(l, len(r.buf)) {
		err = i.store(digestOf(r.before))
	}
	switch {
	case err != nil:
		return err
	case l.Row != nil:
		if l.Row.LeftOut == nil { // an earlier writ may have decided it
			l.Row.LeftOut = ledger.LeftOutOf(l.Row)
		}
		i.rows = append(i.rows, l.Row)
	case left != nil:
		i.removed = append(i.removed, left)
	case l.Document != nil:
		doc, err := l.Document.stored(i.org)
		if err != nil {
			return &LineError{Line: r.n, Err: err}
		}
		doc.Value = bytes.Clone(doc.Value)
		i.documents = append(i.documents, doc)
	}
	return nil
}

// store stores a run. It returns an error if the lines up to the end of the run differ from the
// checked lines.
func (i *importer) store(digest string) error {
	if i.runs >= len(i.checked.runs) || i.checked.runs[i.runs] != digest {
		return errChanged
	}
	i.runs++
	return i.flush()
}

func (i *importer) flush() error {
	if len(i.rows)+len(i.removed) > 0 {
		if err := i.Store.Import(i.ctx, i.org, i.rows, i.removed); err != nil {
			return fmt.Errorf("storing decisions up to %s: %w", i.state.last, err)
		}
	}
	if err := i.putDocuments(); err != nil {
		return err
	}
	i.rows, i.removed, i.documents = nil, nil, nil
	i.Progress.Tell("rows", int(i.state.tree.Rows), int(i.checked.Footer.Rows))
	return nil
}
