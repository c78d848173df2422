package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
)

// stream is a numbered series of writes.
type stream byte

const (
	headStream   stream = 'h' // writes of what follows from frames, by the number of the last one
	changeStream stream = 'c' // all other writes, by Store.change
)

// Marks show whether writes in the middle of a stream are missing in Pebble. Each write of a stream
// sets the mark of its own number and deletes the mark of the write before. So a whole stream has
// exactly one mark. If writes in the middle are lost, the mark before them was not deleted, and the
// stream has two marks. Pebble loses such writes without an error if its manifest is truncated.
// Then it does not know its newest tables, but it reads the log that was written after them.

func markKey(s stream, n uint64) key {
	return binary.BigEndian.AppendUint64(key{byte(kindMark), byte(s)}, n)
}

// mark sets the mark of write n and deletes the mark of write n-1. n must not be 0.
func (b *batch) mark(s stream, n uint64) {
	b.set(markKey(s, n), nil)
	if b.err == nil {
		// A mark is set only once, so SingleDelete is allowed. With it the first flush drops the
		// mark and the deletion. An ordinary deletion would stay until it reaches the last level.
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

// acceptLoss makes a store consistent after an operator has accepted its losses. In each stream it keeps
// only the last mark.
func (s *Store) acceptLoss() error {
	last := s.end()
	b := s.newBatch()
	b.deleteRange(key{byte(kindDerived)}, key{byte(kindDerived) + 1})
	if end := s.log.Last(); end < s.kept {
		if err := s.forgetLost(b, end); err != nil {
			return err
		}
		s.kept = end
		b.number(keptKey, int64(end)) //nolint:gosec // it counts
	}
	for of, n := range map[stream]uint64{headStream: s.kept, changeStream: last.Change} {
		if err := s.setMark(b, of, n); err != nil {
			return err
		}
	}
	return s.apply(b)
}

// forgetLost adds to b what makes Pebble forget the frames after the last one. The intents in them count as
// undecided again. Rows that are stored later in frames of the same numbers were not removed.
func (s *Store) forgetLost(b *batch, last uint64) error {
	p := s.health.begin("counting what is left", last)
	defer p.end()
	err := s.recountTo(b, last, p, func(stored, counted, removed int64) int64 {
		return min(stored, counted+removed)
	})
	if err != nil {
		return err
	}
	return s.scanKind(context.Background(), kindRemoved, func(org string, _, v []byte) error {
		gone, err := parseRemovals(v)
		for i := range gone {
			gone[i].last = min(gone[i].last, last)
		}
		b.set(orgKey(kindRemoved, org), gone.append(nil))
		return err
	})
}

// setMark adds changes to b so that the stream of has only the mark of n.
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
