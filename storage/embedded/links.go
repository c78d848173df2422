package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
)

// stream is a series of writes whose order is known when they are made.
type stream byte

const (
	headStream   stream = 'h' // commits, by the sequence of their heads
	changeStream stream = 'c' // all other writes, by Store.change
)

// Each write adds the link of its own number and takes away the one before, so
// that one link is there, whatever the number of writes. Where the middle of a
// stream is lost, the link before it stays: two are there. Pebble loses such a
// middle without an error when its manifest has lost its end: it knows nothing of
// the tables that were written last, yet reads the log that came after them.

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
	prefix := key{byte(kindLink), byte(of)}
	err = s.scan(context.Background(), prefix, prefix.end(), func(k, _ []byte) (bool, error) {
		if len(k) != len(linkKey(of, 0)) {
			return true, fmt.Errorf("a stored link of %d bytes", len(k))
		}
		numbers = append(numbers, binary.BigEndian.Uint64(k[len(prefix):]))
		return false, nil
	})
	return numbers, err
}

// mend leaves the last link of each stream alone. It is for a store whose losses
// an operator has accepted.
func (s *Store) mend() error {
	last := s.end()
	b := &batch{b: s.db.NewBatch()}
	for of, n := range map[stream]uint64{headStream: last.Head, changeStream: last.Change} {
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
	}
	if b.err != nil {
		return b.err
	}
	if b.b.Empty() {
		return b.b.Close()
	}
	return s.apply(b.b)
}

// begin adds the first links to b, those of a store that has come as far as t.
func (b *batch) begin(t tip) {
	b.set(linkKey(headStream, t.Head), nil)
	b.set(linkKey(changeStream, t.Change), nil)
}
