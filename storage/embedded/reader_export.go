package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"writ/ledger/receipt"
	"writ/storage"
)

// View calls f with the documents.
func (r *Reader) View(ctx context.Context, f func(storage.Reader) error) (err error) {
	defer readPanic(&err)
	return r.s.View(ctx, f)
}

// Size returns the number of org's rows and the newest one's id, empty if there is none.
func (r *Reader) Size(ctx context.Context, org string) (rows int, newest string, err error) {
	defer readPanic(&err)
	if err := checkOrg(org); err != nil {
		return 0, "", err
	}
	prefix := orgKey(kindRecord, org)
	var last uuid.UUID
	err = r.s.scan(ctx, prefix, prefix.end(), func(k, _ []byte) (bool, error) {
		id, settlement, err := parsePosition(k[len(prefix):])
		if !settlement {
			last = id
			rows++
		}
		return false, err
	})
	if rows > 0 {
		newest = last.String()
	}
	return rows, newest, err
}

// RowsOf calls f for each row of org after an id, in the order of their ids. An empty id
// is before all.
func (r *Reader) RowsOf(ctx context.Context, org, after string, f func(*storage.Record) error) (err error) {
	defer readPanic(&err)
	if err := checkOrg(org); err != nil {
		return err
	}
	prefix := orgKey(kindRecord, org)
	lower := prefix
	if after != "" {
		id, ok := storage.ParseID(after)
		if !ok {
			return fmt.Errorf("rows after %.64q, which is no id", after)
		}
		lower = recordKey(org, id).end() // skips its settlement
	}
	var last *storage.Record // whose settlement may follow
	err = r.s.scan(ctx, lower, prefix.end(), func(k, v []byte) (bool, error) {
		id, settlement, err := parsePosition(k[len(prefix):])
		if settlement && err == nil {
			if last == nil || last.DecisionID != id.String() {
				return true, broken(org, id, "a settlement is there, and no such row")
			}
			return false, r.s.settleRow(last, v)
		}
		if last != nil && err == nil {
			err = f(last)
		}
		if err == nil {
			last, err = r.s.parseRow(org, id, v, nil)
		}
		return false, err
	})
	if last != nil && err == nil {
		err = f(last)
	}
	return err
}

// TombstonesOf calls f for the tombstone of each removed row of org. A row that was
// removed in a format without leaves has a leaf of zeros.
func (r *Reader) TombstonesOf(ctx context.Context, org string, f func(*storage.Tombstone) error) (err error) {
	defer readPanic(&err)
	if err := errors.Join(checkOrg(org), r.Chains(ctx, func(receipt.Chain) error { return nil })); err != nil {
		return err
	}
	rows, err := r.org(org)
	if err != nil {
		return err
	}
	prefix := orgKey(kindIntent, org)
	return r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		id, left, imported, err := parseIntent(v, r.chain)
		if len(left) == 0 && string(id[:]) <= string(rows.removed) {
			left = make([]receipt.Leaf, 1)
		}
		if err != nil || len(left) == 0 {
			return err != nil, err
		}
		if left[0].Seq == 0 {
			if _, err := r.s.get(recordKey(org, id)); !errors.Is(err, storage.ErrNotFound) {
				return err != nil, err // the row exists
			}
		}
		intentID, approvalID := storage.CutIntentKey(string(k[len(prefix):]))
		return false, f(&storage.Tombstone{
			OrganizationID: org, IntentID: intentID, ApprovalID: approvalID, DecisionID: id.String(), Leaves: left, Imported: imported,
		})
	})
}
