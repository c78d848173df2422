package mongodb

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"writ/storage"
)

// Import implements storage.Importer, in one transaction.
func (s *Store) Import(ctx context.Context, org string, rows []*storage.Record, removed []*storage.Tombstone) error {
	if err := storage.CheckImport(org, rows, removed); err != nil {
		return err
	}
	return s.rewrite(ctx, org, "importing decisions", func(ctx context.Context) error {
		i := importing{appending{ctx: ctx, s: s, ids: make(decisionIDs, len(rows))}, org}
		return i.write(rows, removed)
	})
}

type importing struct {
	appending
	org string
}

func (i *importing) write(rows []*storage.Record, removed []*storage.Tombstone) error {
	stored, err := i.stored(rows, removed)
	if err != nil {
		return err
	}
	var fresh []*storage.Record
	for _, r := range rows {
		if stands, ok := stored[r.IntentKey()]; !ok {
			fresh = append(fresh, r)
			i.ids[r] = uuid.MustParse(r.DecisionID) // CheckImport has
		} else if err := storage.SameRow(stands.record, r); err != nil {
			return err
		}
	}
	var left []tombstone
	for _, t := range removed {
		id := uuid.MustParse(t.DecisionID)
		if stands, ok := stored[t.IntentKey()]; !ok {
			row := tombstone{Intent: intentKey(i.org, t.IntentKey()), Removed: id[:], Imported: true}
			for _, l := range t.Leaves {
				row.add(l)
			}
			left = append(left, row)
		} else if !stands.record.Removed() || stands.id != id {
			return fmt.Errorf("%w: another decision than %s, which was removed, stands for its intent",
				storage.ErrConflict, id)
		}
	}
	if err := i.unknown(fresh, left); err != nil {
		return err
	}
	if err := i.s.insertRows(i.ctx, fresh, i.ids); err != nil || len(left) == 0 {
		return err
	}
	_, err = i.s.records().InsertMany(i.ctx, left)
	return err
}

// stored returns the stored rows of the imported intents.
func (i *importing) stored(rows []*storage.Record, removed []*storage.Tombstone) (map[string]parsedRow, error) {
	keys := make([][]byte, 0, len(rows)+len(removed))
	for _, r := range rows {
		keys = append(keys, intentKey(i.org, r.IntentKey()))
	}
	for _, t := range removed {
		keys = append(keys, intentKey(i.org, t.IntentKey()))
	}
	stored := make(map[string]parsedRow)
	if len(keys) == 0 {
		return stored, nil
	}
	found, err := find[bson.Raw](i.ctx, i.s.records(), anyOf("_id", keys))
	for _, raw := range found {
		w, err := parseRow(i.org, raw)
		if err != nil {
			return nil, err
		}
		stored[w.record.IntentKey()] = w
	}
	return stored, err
}

// unknown returns storage.ErrConflict if an imported decision already has a row of
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
