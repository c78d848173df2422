package embedded

import (
	"context"
	"encoding/binary"
	"slices"
	"sort"

	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
)

// A removal leaves the rows in their segment, where no list has them. Such rows are garbage.
// Once about half of a segment is garbage, the segment is rewritten, and the leaves of the removed
// rows replace the rows. The leaves stay because the proofs of other rows in the same frames need
// them. A key of kindGarbage counts the bytes of removed rows in a segment:
//
//	'S' number(8) = bytes(8)

// garbage counts the bytes of removed rows by the number of their frame.
type garbage map[uint64]int64

// add adds the bytes of a row and of its settlement.
func (g garbage) add(s *Store, r *row) error {
	g[r.at.frame] += int64(len(r.in.items[r.at.index]))
	if r.settled.frame == 0 {
		return nil
	}
	f, err := s.frame(r.settled.frame)
	if err == nil {
		g[f.number] += int64(len(f.items[r.settled.index]))
	}
	return err
}

func garbageKey(number uint64) key {
	return binary.BigEndian.AppendUint64(key{byte(kindGarbage)}, number)
}

// addGarbage adds g to the counts of the segments.
func (s *Store) addGarbage(b *batch, g garbage) error {
	if len(g) == 0 {
		return nil
	}
	counts := make(map[uint64]int64)
	segments := s.log.Segments()
	for frame, n := range g {
		if i := sort.Search(len(segments), func(i int) bool { return segments[i].First > frame }); i > 0 {
			counts[segments[i-1].Number] += n
		}
	}
	for number, n := range counts {
		stored, err := s.count(garbageKey(number))
		if err != nil {
			return err
		}
		b.number(garbageKey(number), stored+n)
	}
	return nil
}

// rewriteLater starts a goroutine that rewrites the segments that are at least half garbage.
func (s *Store) rewriteLater() {
	if !s.rewriting.CompareAndSwap(false, true) {
		return
	}
	s.background.Go(func() {
		defer s.rewriting.Store(false)
		if err := s.rewriteGarbage(context.Background()); err != nil {
			s.health.log.Warn("a segment of the history still has removed rows; it will be tried again", "err",
				err.Error())
		}
	})
}

func (s *Store) rewriteGarbage(ctx context.Context) error {
	for _, seg := range s.log.Segments() {
		select {
		case <-s.stopping:
			return nil
		default:
		}
		if !seg.Sealed {
			continue
		}
		n, err := s.count(garbageKey(seg.Number))
		if err != nil {
			return err
		}
		if 2*n < seg.Bytes {
			continue
		}
		if err := s.rewrite(ctx, seg.Number, n); err != nil {
			return err
		}
	}
	return nil
}

// rewrite rewrites a segment and removes its garbage. counted is the segment's
// garbage before the rewrite. Afterwards rewrite subtracts counted, so rows that are removed in the
// meantime stay counted.
func (s *Store) rewrite(ctx context.Context, number uint64, counted int64) error {
	s.commits.Lock()
	err := s.keep() // its rows must be counted, because they cannot be counted later
	s.commits.Unlock()
	if err != nil {
		return err
	}
	s.rewrites.Lock()
	err = s.log.Rewrite(ctx, number, func(stored segment.Frame) ([][]byte, error) {
		f, err := decodeFrame(stored)
		if err != nil {
			return nil, err
		}
		items := slices.Clone(f.items)
		return items, f.each(func(i int, it *item) error {
			gone, err := s.gone(f, it)
			if !gone || err != nil {
				return err
			}
			leaf, err := it.leaf(f.head.KeyID)
			items[i] = append([]byte{removedItem}, leaf[:]...)
			return err
		})
	})
	if err == nil {
		err = s.tables.Rewritten(number)
	}
	s.rewrites.Unlock()
	if err != nil {
		return err
	}
	s.frames.forget()
	s.writes.Lock()
	defer s.writes.Unlock()
	left, err := s.count(garbageKey(number))
	if err != nil {
		return err
	}
	b := s.newBatch()
	b.number(garbageKey(number), left-counted)
	return s.apply(b)
}

// gone reports whether an item of a frame is a removed row, or the settlement of a removed row.
func (s *Store) gone(f *frame, it *item) (bool, error) {
	if it.kind != recordItem && it.kind != settlementItem {
		return false, nil
	}
	gone, err := s.now().removals(it.org)
	if err != nil || gone.has(it.id, f.number) {
		return err == nil, err
	}
	if !f.imported() { // only an import can be abandoned
		return false, nil
	}
	at, name := placeOf(it.id), s.tables.Lists(it.org).List(index.Settled, 0)
	ends, err := s.tables.Cursor(name, false, at, at).Find(at, nil)
	if err != nil {
		return false, err
	}
	left, err := s.now().settle([]row{{it: *it, at: location{frame: f.number}}}, gone, ends)
	return len(left) == 0, err
}
