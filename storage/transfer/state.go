package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// state is a reader's summary of the lines so far. Each line is compared with it.
type state struct {
	header    *Header
	last      string // last decision id
	tree      ledger.ImportTree
	documents int64
	rank      int    // rank of the last document
	id        string // id of the last document
	footer    *Footer
}

// take adds the next line. For a removed row it returns the tombstone.
func (s *state) take(r *reader, l *line) (tombstone *storage.Tombstone, err error) {
	switch {
	case s.footer != nil:
		err = errors.New("it is after the footer")
	case s.header == nil && l.Header == nil, s.header != nil && l.Header != nil:
		err = errors.New("the first line, and no other, is the header")
	case l.Header != nil:
		s.header, err = l.Header, l.Header.check()
	case l.Row != nil:
		if err = s.decision(l.Row.OrganizationID, l.Row.DecisionID); err == nil {
			err = storage.CheckImport(s.header.OrganizationID, []*storage.Record{l.Row}, nil)
		}
		if err == nil {
			s.tree.AddRow(l.Row)
		}
	case l.Removed != nil:
		if tombstone, err = l.Removed.tombstone(s.header.OrganizationID); err == nil {
			err = s.decision(s.header.OrganizationID, l.Removed.DecisionID)
		}
		if err == nil {
			err = storage.CheckImport(s.header.OrganizationID, nil, []*storage.Tombstone{tombstone})
		}
		if err == nil {
			s.tree.AddRemoved(tombstone)
		}
	case l.Document != nil:
		err = s.document(l.Document)
	case l.Footer != nil:
		s.footer = l.Footer
		if want := s.footerOf(r.before); *l.Footer != want {
			err = fmt.Errorf("the footer is of %s, and above it are %s: the file was changed or cut", l.Footer, &want)
		}
	case l.Part != nil:
		err = errors.New("it ends a part, and a file has no parts")
	}
	if err != nil {
		return nil, &LineError{Line: r.n, DecisionID: l.id(), Err: err}
	}
	return tombstone, nil
}

func (h *Header) check() error {
	id, err := uuid.Parse(h.ID)
	switch {
	case h.Format != format && h.Format != withoutRevisions && h.Format != withoutFindings:
		return fmt.Errorf("its format is %.32q, this writ knows %s, %s and %s", h.Format, format, withoutRevisions,
			withoutFindings)
	case err != nil || id.Version() != 7 || id.String() != h.ID:
		return fmt.Errorf("its id, %.64q, is not a UUIDv7", h.ID)
	case h.OrganizationID == "":
		return errors.New("it names no organization")
	}
	return nil
}

// decision returns an error if a decision is out of order or belongs to another organization.
func (s *state) decision(org, id string) error {
	switch {
	case org != s.header.OrganizationID:
		return fmt.Errorf("it is of organization %.64q, and the file of %.64q", org, s.header.OrganizationID)
	case s.documents > 0:
		return errors.New("it is after the documents")
	case strings.Compare(id, s.last) <= 0:
		return fmt.Errorf("it is there twice or out of order: the one before is %s", s.last)
	case strings.Compare(id, s.header.Last) > 0:
		return fmt.Errorf("the header says that %.64s is the last", s.header.Last)
	}
	s.last = id
	return nil
}

func (s *state) document(d *document) error {
	rank, id, err := d.place()
	if err == nil && s.documents > 0 && cmp.Or(cmp.Compare(rank, s.rank), cmp.Compare(id, s.id)) <= 0 {
		err = fmt.Errorf("a %s is there twice or is out of order", d.Kind)
	}
	s.rank, s.id = rank, id
	s.documents++
	return err
}

// footerOf returns the footer for the lines so far. h is their hash.
func (s *state) footerOf(h hash.Hash) Footer {
	return Footer{
		Rows: s.tree.Rows, Settled: s.tree.Settled, Removed: s.tree.Removed, Documents: s.documents,
		Root: s.tree.Root(), Digest: digestOf(h),
	}
}
