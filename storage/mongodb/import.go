package mongodb

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"writ.example/writ/storage"
)

// Import implements storage.Importer, in one transaction.
func (s *Store) Import(ctx context.Context, org string, rows []*storage.Record, removed []*storage.Tombstone) error {
	if err := storage.CheckImport(org, rows, removed); err != nil {
		return err
	}
	return s.rewrite(ctx, org, "importing decisions", func(ctx context.Context) error {
		if err := s.indexed(recordsName); err != nil {
			return err
		}
		i := importing{appending{ctx: ctx, s: s, ids: make(decisionIDs, len(rows))}, org}
		return i.write(rows, removed)
	})
}

type importing struct {
	appending
	org string
}

func (i *importing) write(rows []*storage.Record, removed []*storage.Tombstone) error {
	keys := make([][]byte, 0, len(rows)+len(removed))
	add := func(intentID, approvalID string) error {
		key, err := intentKey(i.org, intentID, approvalID)
		keys = append(keys, key)
		return err
	}
	for _, r := range rows {
		if err := add(r.IntentID, r.ApprovalID); err != nil {
			return err
		}
	}
	for _, t := range removed {
		if err := add(t.IntentID, t.ApprovalID); err != nil {
			return err
		}
	}
	stored, err := i.s.rowsOf(i.ctx, keys)
	if err != nil {
		return err
	}
	var fresh []*storage.Record
	for n, r := range rows {
		row, ok := stored[string(keys[n])]
		if !ok {
			fresh = append(fresh, r)
			i.ids[r] = uuid.MustParse(r.DecisionID) // CheckImport has parsed r.DecisionID
			continue
		}
		w, err := parseRow(i.org, row)
		if err == nil {
			err = storage.SameRow(w.record, r)
		}
		if err != nil {
			return err
		}
	}
	var left []tombstone
	for n, t := range removed {
		id, key := uuid.MustParse(t.DecisionID), keys[len(rows)+n]
		row, ok := stored[string(key)]
		if !ok {
			left = append(left, newTombstone(key, id, t.Leaves, true))
			continue
		}
		w, err := parseRow(i.org, row)
		if err == nil && (!w.record.Removed() || w.id != id) {
			err = fmt.Errorf("%w: another decision than %s, which was removed, stands for its intent",
				storage.ErrConflict, id)
		}
		if err != nil {
			return err
		}
	}
	if err := i.unknown(fresh, left); err != nil {
		return err
	}
	if err := i.s.insertRows(i.ctx, fresh, i.ids); err != nil {
		return err
	}
	if err := i.s.addCounts(i.ctx, i.s.slot.chain, countsOf(fresh, 1)); err != nil || len(left) == 0 {
		return err
	}
	_, err = i.s.records().InsertMany(i.ctx, left)
	return err
}

// unknown returns storage.ErrConflict if the id of an imported decision is already stored for
// another intent.
func (i *importing) unknown(rows []*storage.Record, left []tombstone) error {
	ids := make([][]byte, 0, len(rows)+len(left))
	for _, id := range i.ids {
		ids = append(ids, slices.Clone(id[:]))
	}
	for _, t := range left {
		ids = append(ids, t.Removed)
	}
	if len(ids) == 0 {
		return nil
	}
	n, err := i.s.records().CountDocuments(i.ctx, doc(recordOrg, i.org, recordID, doc("$in", ids)))
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: %d of the decisions are of other intents", storage.ErrConflict, n)
	}
	return err
}
