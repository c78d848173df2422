package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sort"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/segment"
)

// A removal leaves the rows in their segment, where no key leads to them. Such rows are garbage.
// Once about half of a segment is garbage, the segment is rewritten, and the leaves of the removed
// rows replace the rows. The leaves stay because the proofs of other rows in the same frames need
// them. A key of kindGarbage counts the bytes of removed rows in a segment:
//
//	'S' number(8) = bytes(8)

// garbage counts the bytes of removed rows by the number of their frame.
type garbage map[uint64]int64

// add adds the bytes of the row or settlement at the location v.
func (g garbage) add(s *Store, v []byte) error {
	f, index, err := s.locate(v)
	if err == nil {
		g[f.number] += int64(len(f.items[index]))
	}
	return err
}

// addKey adds the bytes of the row or settlement with the key k, if it exists.
func (g garbage) addKey(s *Store, k key) error {
	v, err := s.index.Get(k)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return g.add(s, v)
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

// rewrite rewrites a segment and removes the rows to which no key leads. counted is the segment's
// garbage before the rewrite. Afterwards rewrite subtracts counted, so rows that are removed in the
// meantime stay counted.
func (s *Store) rewrite(ctx context.Context, number uint64, counted int64) error {
	if err := s.index.Flush(); err != nil { // now the keys of the segment's rows are in Pebble
		return err
	}
	s.rewrites.Lock()
	err := s.log.Rewrite(ctx, number, func(stored segment.Frame) ([][]byte, error) {
		f, err := decodeFrame(stored)
		if err != nil {
			return nil, err
		}
		items := slices.Clone(f.items)
		return items, f.each(func(i int, it *item) error {
			gone, err := s.gone(it)
			if !gone || err != nil {
				return err
			}
			leaf, err := it.leaf(f.head.KeyID)
			items[i] = append([]byte{removedItem}, leaf[:]...)
			return err
		})
	})
	if err == nil {
		err = s.intents.Rewritten(number)
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

// gone reports whether an item is a removed row, or the settlement of a removed row.
func (s *Store) gone(it *item) (bool, error) {
	if it.kind != recordItem && it.kind != settlementItem {
		return false, nil
	}
	_, err := s.index.Get(recordKey(it.org, it.id))
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	return false, err
}
