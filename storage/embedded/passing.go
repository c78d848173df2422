package embedded

import (
	"context"
	"math"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/receipt"
)

// Followed implements storage.Log. The directory has only one chain.
func (s *Store) Followed(ctx context.Context) ([]receipt.Chain, error) {
	tip, err := s.Tip(ctx)
	return []receipt.Chain{tip}, err
}

// Rows implements storage.Log.
func (s *Store) Rows(ctx context.Context, q storage.RowQuery, f func(storage.HeadRows) error) (err error) {
	tip, err := s.Tip(ctx)
	if err != nil || q.Chain != tip.ID {
		return err
	}
	// Commits that are not durable are the newest, so they are not among the first heads. The tip was
	// read before, so later commits only make the bound lower.
	durable := tip.Seq - min(tip.Seq, uint64(s.unsynced())) //nolint:gosec // it counts
	if q.From > durable {
		return nil
	}
	l := lookups{view: s.now()}
	return s.headsFrom(ctx, q.From, durable, func(h *frame) error {
		rows := storage.HeadRows{Seq: h.head.Seq}
		if err := s.rowsOf(h, &q, &l, &rows); err != nil {
			return &storage.BreakError{Head: rows.Seq, Err: err}
		}
		return f(rows)
	})
}

// headsAtOnce is how many heads are read with the same lookups: new ones read again, and old ones do not have
// the settlements that were added since.
const headsAtOnce = 64

// orgsAtOnce is how many organizations have a lookup at most. Each takes some 150 bytes for each segment.
const orgsAtOnce = 256

// lookups find what became of the rows of some heads.
type lookups struct {
	view  rowView
	heads int
	orgs  map[string]*lookup
	ends  []index.Entry
}

type lookup struct {
	gone    removals
	settled *index.Cursor
}

// of returns the lookup of an organization.
func (l *lookups) of(org string) (*lookup, error) {
	if of := l.orgs[org]; of != nil {
		return of, nil
	}
	gone, err := l.view.removals(org)
	if err != nil {
		return nil, err
	}
	if len(l.orgs) == orgsAtOnce {
		clear(l.orgs)
	}
	tables := l.view.store.tables
	of := &lookup{gone, tables.Cursor(tables.Lists(org).List(index.Settled, 0), false, 0, math.MaxUint64)}
	l.orgs[org] = of
	return of, nil
}

// rowsOf reads the records of a frame, and looks them up with l. Records come first in a frame. Removed
// items after the last record count as records, because they do not say what they were.
func (s *Store) rowsOf(f *frame, q *storage.RowQuery, l *lookups, rows *storage.HeadRows) error {
	if l.heads%headsAtOnce == 0 {
		l.orgs = make(map[string]*lookup)
	}
	l.heads++
	wanted := func(i *item) bool {
		return i.kind == removedItem || i.kind == recordItem && (q.Org == "" || q.Org == i.org)
	}
	if q.Bare {
		return f.each(func(_ int, i *item) error {
			if wanted(i) {
				rows.Count++
			}
			return nil
		})
	}
	leaves, places := make([][32]byte, len(f.items)), []int(nil)
	err := f.each(func(n int, i *item) (err error) {
		if wanted(i) {
			rows.Count++
		}
		if i.kind != recordItem {
			leaves[n], err = i.leaf(f.head.KeyID)
			return err
		}
		// The record is parsed once, for the row and for the leaf.
		r, err := parseRecord(i.org, i.id, i.body, nil)
		if err != nil {
			return err
		}
		if r.Receipt.KeyID == "" {
			r.Receipt.KeyID = f.head.KeyID
		}
		if leaves[n] = r.Receipt.LeafHash(); !wanted(i) {
			return nil
		}
		if there, err := l.settle(r, row{in: f, it: *i, at: location{f.number, uint32(n)}}); !there || err != nil {
			return err
		}
		rows.Records, places = append(rows.Records, r), append(places, n)
		return nil
	})
	for n, r := range rows.Records {
		if err == nil && r.Receipt.Sig == "" {
			r.Receipt.Sig, err = f.signed(leaves, places[n])
		}
	}
	return err
}

// settle gives r its settlement. It reports whether the row of r is still there.
func (l *lookups) settle(r *storage.Record, of row) (there bool, err error) {
	found, err := l.of(of.it.org)
	if err != nil || found.gone.has(of.it.id, of.at.frame) {
		return false, err
	}
	if l.ends, err = found.settled.Find(placeOf(of.it.id), l.ends[:0]); err != nil {
		return false, err
	}
	left, err := l.view.settle([]row{of}, found.gone, l.ends)
	if len(left) == 0 || err != nil {
		return false, err
	}
	if left[0].settled.frame > 0 {
		err = l.view.store.readSettlement(r, left[0].settled)
	}
	return true, err
}
