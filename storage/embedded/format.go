package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"writ/ledger/receipt"
	"writ/storage"
)

// format is the version of the keys and values. A greater one is refused,
// because this writ would misread data of a newer one.
const format = 6

const (
	linkedFormat   = 3 // the first in which each write has a link and the tip is recorded
	documentFormat = 5 // the first in which documents are as documents.go has them
	frameFormat    = 6 // the first whose history is in segments
)

var formatKey = append(key{byte(kindFormat)}, "writ"...)

// newChain begins a chain under a random id.
func newChain() (c receipt.Chain) {
	rand.Read(c.ID[:]) // never fails: it would crash the process
	return c
}

// load checks the directory's format, or sets it in a new directory, and continues from
// the state that inspect found.
func (s *Store) load(found inspection) error {
	v, err := s.get(formatKey)
	if errors.Is(err, storage.ErrNotFound) {
		return s.create()
	}
	if err != nil {
		return fmt.Errorf("reading the format: %w", err)
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return fmt.Errorf("reading the format: %w", err)
	}
	if n > format {
		return fmt.Errorf("a newer writ has written this directory: its format is %d, this writ knows %d", n, format)
	}
	head, err := s.lastHead()
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err == nil {
		s.tip = receipt.Chain{ID: head.Chain}.Next(head.Head)
	}
	s.change = max(found.tip.Change, found.noted.Change) // no revision is given twice, even after a loss
	if n >= linkedFormat && len(found.reasons) > 0 {
		if err := errors.Join(s.mend(), s.noteTip(s.end())); err != nil {
			return err
		}
	}
	if n < format {
		if err := s.upgrade(n); err != nil {
			return fmt.Errorf("upgrading the directory from format %d to %d: %w", n, format, err)
		}
	}
	return nil
}

func (s *Store) create() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	foreign := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if foreign {
		return errors.New("this is a Pebble directory, but not writ's")
	}
	if err := s.noteTip(tip{}); err != nil {
		return err
	}
	b := &batch{b: s.db.NewBatch()}
	b.setFormat(format)
	b.begin(tip{})
	if b.err != nil {
		return b.err
	}
	if err := s.apply(b.b); err != nil {
		return err
	}
	// Pebble begins a new directory's log in an old format, in which damage in
	// its middle looks like its end. Flush begins another log.
	return s.db.Flush()
}
