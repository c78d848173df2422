package embedded

import (
	"context"
	"errors"

	"writ/storage"
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
	it, err := s.index.Iter()
	if err != nil {
		return err
	}
	err = f.each(func(_ int, i *item) error {
		switch i.kind {
		case removedItem:
			rows.Count++
		case recordItem:
			if q.Org != "" && q.Org != i.org {
				return nil
			}
			rows.Count++
			if q.Bare {
				return nil
			}
			r, err := s.recordAt(it, i.org, i.id, nil)
			if errors.Is(err, storage.ErrNotFound) {
				return nil
			}
			rows.Records = append(rows.Records, r)
			return err
		}
		return nil
	})
	return errors.Join(err, it.Close())
}
