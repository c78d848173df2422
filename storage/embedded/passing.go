package embedded

import (
	"context"
	"errors"

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
	var lookups lookups
	defer func() { err = errors.Join(err, lookups.close()) }()
	return s.index.Scan(ctx, headKey(q.From), headKey(durable+1), func(k, v []byte) (bool, error) {
		rows := storage.HeadRows{Seq: headSeq(k)}
		at, err := parseLocation(v)
		if err == nil && !q.Bare {
			err = lookups.renew(s.index)
		}
		if err == nil {
			err = s.rowsOf(at.frame, &q, lookups.it, &rows)
		}
		if err != nil {
			return true, &storage.BreakError{Head: rows.Seq, Err: err}
		}
		return false, f(rows)
	})
}

// headsAtOnce is how many heads are read from one state of the index. A new state costs a sort of what
// was committed since the last one, and copies of what is written afterwards. An old one finds settlements
// that were moved since, and keeps deleted files.
const headsAtOnce = 64

// lookups has an iterator for the rows of some heads.
type lookups struct {
	it    *index.Iterator
	heads int
}

// renew opens another iterator when it has served headsAtOnce calls.
func (l *lookups) renew(x *index.Index) (err error) {
	if l.heads++; l.it == nil || l.heads > headsAtOnce {
		err = l.close()
		l.heads = 1
		if err == nil {
			l.it, err = x.Iter()
		}
	}
	return err
}

func (l *lookups) close() (err error) {
	if l.it != nil {
		err = l.it.Close()
	}
	l.it = nil
	return err
}

// rowsOf reads the records of a frame, and looks them up with it. Records come first in a frame. Removed
// items after the last record count as records, because they do not say what they were.
func (s *Store) rowsOf(number uint64, q *storage.RowQuery, it *index.Iterator, rows *storage.HeadRows) error {
	f, err := s.frame(number)
	if err != nil {
		return err
	}
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
	err = f.each(func(n int, i *item) (err error) {
		if wanted(i) {
			rows.Count++
		}
		if i.kind != recordItem {
			leaves[n], err = i.leaf(f.head.KeyID)
			return err
		}
		// The record is parsed once, for the row and for the leaf.
		r, err := parseRecord(i.org, i.id, []byte(i.body), nil)
		if err != nil {
			return err
		}
		if r.Receipt.KeyID == "" {
			r.Receipt.KeyID = f.head.KeyID
		}
		if leaves[n] = r.Receipt.LeafHash(); !wanted(i) {
			return nil
		}
		if there, err := s.settled(it, r, i); !there || err != nil {
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

// settled gives r its settlement. It reports whether the row of r is still there.
func (s *Store) settled(it *index.Iterator, r *storage.Record, i *item) (there bool, err error) {
	k := recordKey(i.org, i.id)
	if _, there, err = it.Seek(k); !there || err != nil {
		return false, err
	}
	v, found, err := it.Next(append(k, settlementMark))
	if found && err == nil {
		err = s.readSettlement(r, v)
	}
	return true, err
}
