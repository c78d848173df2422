package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
)

// stream is a numbered series of writes.
type stream byte

const (
	headStream   stream = 'h' // moves of the tail, by the number of their last frame
	changeStream stream = 'c' // all other writes, by Store.change
)

// Links detect gaps in Pebble. Each write adds the link of its own number and deletes the
// one before, so a whole stream has exactly one link. If writes are lost from the middle, the
// link before the gap stays and there are two. Pebble loses such a middle without an
// error when its manifest is truncated: it does not know the newest tables, but reads the
// log written after them.

func linkKey(s stream, n uint64) key {
	return binary.BigEndian.AppendUint64(key{byte(kindLink), byte(s)}, n)
}

// link adds the link of write n, which must not be 0, to b.
func (b *batch) link(s stream, n uint64) {
	b.set(linkKey(s, n), nil)
	if b.err == nil {
		// A link is set once, so that it and its deletion vanish with the first
		// flush; an ordinary deletion would stay until it reaches the last level.
		b.err = b.b.SingleDelete(linkKey(s, n-1), nil)
	}
}

// links returns the numbers of the links of s, in order.
func (s *Store) links(of stream) (numbers []uint64, err error) {
	err = s.below(context.Background(), key{byte(kindLink), byte(of)}, func(number, _ []byte) (bool, error) {
		if len(number) != 8 {
			return true, fmt.Errorf("the number of a stored link has %d bytes", len(number))
		}
		numbers = append(numbers, binary.BigEndian.Uint64(number))
		return false, nil
	})
	return numbers, err
}

// mend deletes all links but the last of each stream. It is for a store whose losses an
// operator has accepted.
func (s *Store) mend() error {
	last := s.end()
	b := s.newBatch()
	if end := s.log.Last(); end < s.index.Indexed() {
		if err := s.forget(b, end); err != nil {
			return err
		}
		s.index.SetIndexed(end)
		b.number(indexedKey, int64(end))
	}
	for of, n := range map[stream]uint64{headStream: s.index.Indexed(), changeStream: last.Change} {
		if err := s.mendLinks(b, of, n); err != nil {
			return err
		}
	}
	return s.apply(b)
}

// mendLinks has b leave n as the only link of a stream.
func (s *Store) mendLinks(b *batch, of stream, n uint64) error {
	numbers, err := s.links(of)
	if err != nil {
		return err
	}
	found := false
	for _, number := range numbers {
		if found = found || number == n; number != n {
			b.delete(linkKey(of, number))
		}
	}
	if !found {
		b.set(linkKey(of, n), nil)
	}
	return b.err
}

// begin adds the first links to b, those of a store whose tip is t.
func (b *batch) begin(t tip) {
	b.set(linkKey(headStream, t.Head), nil)
	b.set(linkKey(changeStream, t.Change), nil)
}
