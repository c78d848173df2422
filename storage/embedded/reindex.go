package embedded

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/segment"
)

// recount derives again what Pebble has of all frames: counts, meters, and the tombstones of imports. Pebble can
// lose its tables without an error, although the segments and the documents are whole: see streams.go. What is
// left of removed rows is not in the segments, so recount keeps it. It does not lower a meter.
func (s *Store) recount() error {
	last := s.log.Last()
	s.health.log.Warn("the counts of the history are not whole; they are made again from the segments", "dir",
		s.health.dir, "frames", last)
	p := s.health.begin("counting the history again", last)
	defer p.end()
	b := s.newBatch()
	err := s.recountTo(b, last, p, func(stored, counted, removed int64) int64 {
		return max(stored, counted+removed)
	})
	if err == nil {
		err = s.log.ScanTo(context.Background(), 1, last, func(f segment.Frame) error { return s.bury(b, f) })
	}
	if err == nil {
		err = s.setMark(b, headStream, last)
	}
	if err == nil {
		err = s.keepWith(b, last, s.apply)
	}
	if err != nil {
		return fmt.Errorf("counting the history again: %w", err)
	}
	s.health.log.Info("the counts of the history are whole again", "dir", s.health.dir, "frames", last)
	return nil
}

// bury sets the keys of the tombstones in a frame that stand and have none. It deletes those of abandoned ones
// in a frame that was not kept. An intent whose row was removed keeps its key.
func (s *Store) bury(b *batch, stored segment.Frame) error {
	f, err := decodeFrame(stored)
	if err != nil {
		return err
	}
	return f.each(func(_ int, it *item) error {
		abandoned := it.kind == abandonedItem && f.number > s.kept
		if it.kind != tombstoneItem && !abandoned {
			return nil
		}
		last, err := s.standing(intent{it.org, it.intent})
		k := orgKey(kindIntent, it.org).text(it.intent)
		switch {
		case err != nil:
			return err
		case abandoned && last.kind == 0:
			b.delete(k)
		case it.kind == tombstoneItem && last.kind == tombstoneItem:
			if _, err = s.get(k); errors.Is(err, storage.ErrNotFound) {
				b.set(k, append(last.id[:], last.body...))
				return nil
			}
		}
		return err
	})
}

// recountTo adds writes to b that replace all counts, by those of the rows in frames up to last. It sets each
// meter to what f returns for it: stored is its value, counted is how many of its rows are there, and removed
// how many were removed.
func (s *Store) recountTo(b *batch, last uint64, p *progress, f func(stored, counted, removed int64) int64) error {
	ctx := context.Background()
	counted, removed := make(map[meter]int64), make(map[meter]int64)
	b.deleteRange(key{byte(kindCount)}, key{byte(kindCount) + 1})
	err := s.eachStanding(ctx, func(frame uint64, it *item, _ string) error {
		p.tell(last - min(last, frame))
		if frame > last {
			return nil
		}
		r, err := parseRecord(it.org, it.id, it.body, nil)
		if err != nil {
			return err
		}
		b.count(r, 1)
		if in, err := s.frame(frame); err != nil || in.imported() || !r.Metered() {
			return err
		}
		counted[meter{it.org, storage.MonthOf(r.DecidedAt)}]++
		return nil
	})
	if err == nil {
		err = s.scanKind(ctx, kindIntent, func(org string, intentKey, v []byte) error {
			id, left, imported, err := parseIntent(v, s.tip.ID)
			_, approvalID := storage.CutIntentKey(string(intentKey))
			if err == nil && !imported && left[0].Chain == s.tip.ID && approvalID == "" {
				removed[meter{org, storage.MonthOf(storage.IDTime(id))}]++ // the id's time may be a minute off
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	stored := make(map[meter]int64)
	err = s.eachMeter(ctx, func(m meter, n int64) error { stored[m] = n; return nil })
	for m := range counted {
		stored[m] += 0
	}
	for m, n := range stored {
		b.number(meterKey(m.org, m.month), f(n, counted[m], removed[m]))
	}
	return err
}
