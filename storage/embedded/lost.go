package embedded

import (
	"cmp"
	"context"
	"errors"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// deleteLost adds to b the deletion of all keys that lead to frames after frame last. These frames
// are lost, and an operator has accepted the loss. The intents in them count as undecided again.
func (s *Store) deleteLost(b *batch, last uint64) error {
	f := lostKeys{s: s, b: b, last: last, headed: make(map[uint64]bool), meters: make(map[meter]int64)}
	for _, step := range []struct {
		kind kind
		f    func(k, v []byte) error
	}{{kindHead, f.head}, {kindEntry, f.location}, {kindRecord, f.row}, {kindEntryKey, f.entryKey}} {
		err := s.index.Scan(context.Background(), key{byte(step.kind)}, key{byte(step.kind)}.end(),
			func(k, v []byte) (bool, error) {
				return false, step.f(k, v)
			})
		if err != nil {
			return err
		}
	}
	for m, n := range f.meters {
		stored, err := s.count(meterKey(m.org, m.month))
		if err != nil {
			return err
		}
		b.number(meterKey(m.org, m.month), max(0, stored-n))
	}
	return cmp.Or(s.recount(b, last), b.err)
}

// lostKeys finds the keys that lead to lost frames.
type lostKeys struct {
	s      *Store
	b      *batch
	last   uint64
	headed map[uint64]bool // the lost frames that have heads, so that their rows were not imported
	meters map[meter]int64
}

func (f *lostKeys) lost(v []byte) (frame uint64, lost bool) {
	at, err := parseLocation(v)
	return at.frame, err == nil && at.frame > f.last
}

func (f *lostKeys) head(k, v []byte) error {
	if frame, lost := f.lost(v); lost {
		f.headed[frame] = true
		f.b.delete(k)
	}
	return nil
}

// location deletes k if the location v is in a lost frame.
func (f *lostKeys) location(k, v []byte) error {
	if _, lost := f.lost(v); lost {
		f.b.delete(k)
	}
	return nil
}

func (f *lostKeys) row(k, v []byte) error {
	frame, lost := f.lost(v)
	if !lost {
		return nil
	}
	f.b.delete(k)
	org, rest, err := position(k)
	if err != nil {
		return err
	}
	id, settlement, err := parsePosition(rest)
	if settlement || err != nil {
		return err
	}
	for d := engine.Allow; d <= engine.Deny; d++ {
		k := byDecisionKey(string(org), d).id(id)
		v, err := f.s.index.Get(k)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		f.b.delete(k)
		if len(v) == 0 && f.headed[frame] {
			f.meters[meter{string(org), storage.MonthOf(storage.IDTime(id))}]++ // the id's time may be a minute off
		}
	}
	return nil
}

// entryKey deletes the key of an entry if the entry's place is after the last head.
func (f *lostKeys) entryKey(k, v []byte) error {
	if string(v) > string(key{}.place(place{seq: f.s.tip.Seq + 1})) {
		f.b.delete(k)
	}
	return nil
}
