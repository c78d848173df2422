package embedded

import (
	"context"
	"errors"

	"writ/storage"
	"writ/storage/embedded/index"
	"writ/storage/receipt"
)

// Followed implements storage.Log. The directory has only one chain.
func (s *Store) Followed(ctx context.Context) ([]receipt.Chain, error) {
	tip, err := s.Tip(ctx)
	return []receipt.Chain{tip}, err
}

// Rows implements storage.Log.
func (s *Store) Rows(ctx context.Context, q storage.RowQuery, f func(storage.HeadRows) error) error {
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
	return s.index.Scan(ctx, headKey(q.From), headKey(durable+1), func(k, v []byte) (bool, error) {
		rows := storage.HeadRows{Seq: headSeq(k)}
		at, err := parseLocation(v)
		if err == nil {
			err = s.rowsOf(at.frame, &q, &rows)
		}
		if err != nil {
			return true, &storage.BreakError{Head: rows.Seq, Err: err}
		}
		return false, f(rows)
	})
}

// rowsOf reads the records of a frame. Records come first in a frame. Removed items after the last
// record count as records, because they do not say what they were.
func (s *Store) rowsOf(number uint64, q *storage.RowQuery, rows *storage.HeadRows) error {
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
	it, err := s.index.Iter()
	if err != nil {
		return err
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
	return errors.Join(err, it.Close())
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
