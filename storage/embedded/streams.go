package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
)

// stream is a numbered series of writes.
type stream byte

const (
	headStream   stream = 'h' // flushes of the index, by the number of their last frame
	changeStream stream = 'c' // all other writes, by Store.change
)

// Marks detect gaps in Pebble. Each write of a stream sets the mark of its own number and
// deletes the mark before, so a whole stream has exactly one mark. If writes are lost from
// the middle, the mark before the gap stays and there are two. Pebble loses such a middle
// without an error when its manifest is truncated: it does not know the newest tables, but
// reads the log written after them.

func markKey(s stream, n uint64) key {
	return binary.BigEndian.AppendUint64(key{byte(kindMark), byte(s)}, n)
}

// mark sets the mark of write n, which must not be 0, and deletes the one before.
func (b *batch) mark(s stream, n uint64) {
	b.set(markKey(s, n), nil)
	if b.err == nil {
		// A mark is set once, so it and its deletion vanish with the first flush. An
		// ordinary deletion would stay until it reaches the last level.
		b.err = b.b.SingleDelete(markKey(s, n-1), nil)
	}
}

// marks returns the numbers of the marks of a stream, in order.
func (s *Store) marks(of stream) (numbers []uint64, err error) {
	err = s.scanPrefix(context.Background(), key{byte(kindMark), byte(of)}, func(number, _ []byte) (bool, error) {
		if len(number) != 8 {
			return true, fmt.Errorf("the number of a stored mark has %d bytes", len(number))
		}
		numbers = append(numbers, binary.BigEndian.Uint64(number))
		return false, nil
	})
	return numbers, err
}

// acceptLoss makes a store whole again whose losses an operator has accepted. It deletes the
// keys of lost frames, and all marks but the last of each stream.
func (s *Store) acceptLoss() error {
	last := s.end()
	b := s.newBatch()
	if end := s.log.Last(); end < s.index.Indexed() {
		if err := s.deleteLost(b, end); err != nil {
			return err
		}
		s.index.SetIndexed(end)
		b.number(indexedKey, int64(end))
	}
	for of, n := range map[stream]uint64{headStream: s.index.Indexed(), changeStream: last.Change} {
		if err := s.setMark(b, of, n); err != nil {
			return err
		}
	}
	return s.apply(b)
}

// setMark has b leave the mark of n as the only one of a stream.
func (s *Store) setMark(b *batch, of stream, n uint64) error {
	numbers, err := s.marks(of)
	if err != nil {
		return err
	}
	found := false
	for _, number := range numbers {
		if found = found || number == n; number != n {
			b.delete(markKey(of, number))
		}
	}
	if !found {
		b.set(markKey(of, n), nil)
	}
	return b.err
}
