package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// format is the number of the directory's format. It covers the keys and values, and the items of
// the segments. Open refuses a directory with another number, because this version would misread
// the directory.
const format = 13

var errFormat = errors.New("the data directory has another format")

// checkFormat returns errFormat unless v is the current format. v is the value of formatKey.
func checkFormat(v []byte) error {
	if string(v) == strconv.Itoa(format) {
		return nil
	}
	return fmt.Errorf("%w: its format is %.16q, and this writ reads format %d only: "+
		"start the writ that wrote the directory, or export its organizations with that writ and import them into "+
		"an empty one", errFormat, v, format)
}

var formatKey = append(key{byte(kindFormat)}, "writ"...)

// newChain returns an empty chain with a random id.
func newChain() (c receipt.Chain) {
	rand.Read(c.ID[:]) // never fails: an error would crash the process
	return c
}

// load continues the store that inspect found.
func (s *Store) load(found inspection) error {
	if err := s.keepSecret(); err != nil || !found.exists {
		return err
	}
	head, err := s.lastHead()
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err == nil {
		s.tip = receipt.Chain{ID: head.Chain}.Next(head.Head)
		s.signed(head.Head)
		s.checkClock()
	}
	s.change = max(found.tip.Change, found.noted.Change) // no revision is used twice, even after a loss
	if len(found.reasons) > 0 {
		return errors.Join(s.acceptLoss(), s.noteTip(s.end()))
	}
	return nil
}

// create makes a new store. A kill in the middle leaves a directory in which the next Open makes one again. To
// that end, the row of the format is durable before there are tables or segments.
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
	b := s.newBatch()
	b.set(formatKey, strconv.AppendInt(nil, format, 10))
	b.set(markKey(headStream, 0), nil)
	b.set(markKey(changeStream, 0), nil)
	if err := s.apply(b); err != nil {
		return err
	}
	// Pebble writes the first log of a new directory in an old format. In that format damage in the
	// middle looks like the end of the log. Flush begins another log.
	return s.db.Flush()
}
