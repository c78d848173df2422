package mongodb

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

type decisionIDs map[*storage.Record]uuid.UUID

func (s *database) records() *mongo.Collection { return s.db.Collection(recordsName) }
func (s *database) entries() *mongo.Collection { return s.db.Collection(entriesName) }

// divide returns the first elements of batch in fresh. For each other element, existing has the
// stored element. If look is false, fresh may have records whose intents are decided already.
func (a *appending) divide(batch storage.Batch, look bool) (existing, fresh storage.Batch, err error) {
	existing.Records, fresh.Records, err = a.divideRecords(batch.Records, look)
	if err != nil || len(batch.Entries) == 0 {
		return existing, fresh, err
	}
	existing.Entries, fresh.Entries, err = a.divideEntries(batch.Entries)
	return existing, fresh, err
}

func (s *Store) rowsOf(ctx context.Context, intents [][]byte) (map[string]bson.Raw, error) {
	stored := make(map[string]bson.Raw)
	if len(intents) == 0 {
		return stored, nil
	}
	rows, err := find[bson.Raw](ctx, s.records(), anyOf("_id", intents))
	for _, row := range rows {
		_, key, _ := row.Lookup("_id").BinaryOK()
		stored[string(key)] = row
	}
	return stored, err
}

func (a *appending) divideRecords(batch []*storage.Record, look bool) (existing, fresh []*storage.Record, err error) {
	keys := make([][]byte, len(batch))
	for i, r := range batch {
		if keys[i], err = intentKey(r.OrganizationID, r.IntentID, r.ApprovalID); err != nil {
			return nil, nil, err
		}
	}
	var stored map[string]bson.Raw
	if look {
		if stored, err = a.s.rowsOf(a.ctx, keys); err != nil {
			return nil, nil, err
		}
	}
	existing = make([]*storage.Record, len(batch))
	first := make(map[string]*storage.Record, len(batch))
	for i, r := range batch {
		earlier, ok := first[string(keys[i])]
		if row := stored[string(keys[i])]; !ok && row != nil {
			w, err := parseRow(r.OrganizationID, row)
			if err != nil {
				return nil, nil, err
			}
			earlier = w.record
		}
		if existing[i] = earlier; earlier == nil {
			fresh = append(fresh, r)
			earlier = r
		}
		first[string(keys[i])] = earlier
	}
	return existing, fresh, nil
}

func entryPrefix(org string, kind storage.EntryKind) []byte {
	return append(storage.Text(org), storage.Text(string(kind))...)
}

func entryKey(e *storage.Entry) []byte {
	return append(entryPrefix(e.OrganizationID, e.Kind), e.Key...)
}

func (w *entryRow) entry() (*storage.Entry, error) {
	kind := storage.EntryKind(w.Kind)
	key, ok := bytes.CutPrefix(w.Key, entryPrefix(w.Org, kind))
	if !ok {
		return nil, fmt.Errorf("%w: the entry %x of %q", errCorrupt, w.Key, w.Org)
	}
	return &storage.Entry{
		Kind: kind, OrganizationID: w.Org, Key: string(key), Body: w.Body,
		Inclusion: receipt.Inclusion{Sig: w.Sig, KeyID: w.KeyID},
	}, nil
}

// divideEntries does for entries what divide does for a batch.
func (a *appending) divideEntries(batch []*storage.Entry) (existing, fresh []*storage.Entry, err error) {
	stored, err := a.storedEntries(batch)
	if err != nil {
		return nil, nil, err
	}
	existing = make([]*storage.Entry, len(batch))
	for i, e := range batch {
		key := string(entryKey(e))
		if existing[i] = stored[key]; existing[i] == nil {
			fresh = append(fresh, e)
			stored[key] = e
		}
	}
	return existing, fresh, nil
}

// storedEntries returns the stored entries with the keys of batch. If a settlement's decision is
// not stored, the result has a Removed entry.
func (a *appending) storedEntries(batch []*storage.Entry) (map[string]*storage.Entry, error) {
	stored := make(map[string]*storage.Entry, len(batch))
	var keys [][]byte
	decisions := make(map[string][][]byte) // by organization
	for _, e := range batch {
		if e.Kind != storage.SettlementEntry {
			keys = append(keys, entryKey(e))
			continue
		}
		id := uuid.MustParse(e.Key) // Check has parsed e.Key
		decisions[e.OrganizationID] = append(decisions[e.OrganizationID], id[:])
		stored[string(entryKey(e))] = &storage.Entry{Kind: e.Kind, OrganizationID: e.OrganizationID, Key: e.Key}
	}
	if len(keys) > 0 {
		rows, err := find[entryRow](a.ctx, a.s.entries(), anyOf("_id", keys))
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if stored[string(rows[i].Key)], err = rows[i].entry(); err != nil {
				return nil, err
			}
		}
	}
	a.settled = make(map[string][]byte)
	for org, ids := range decisions {
		rows, err := find[bson.Raw](a.ctx, a.s.records(),
			a.s.onShard(org, doc(recordOrg, org, recordID, doc("$in", ids))))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			w, err := parseRow(org, row)
			if err != nil {
				return nil, err
			}
			e := &storage.Entry{Kind: storage.SettlementEntry, OrganizationID: org, Key: w.record.DecisionID}
			key := string(entryKey(e))
			if w.record.Settlement == nil {
				a.settled[key] = w.intent
				delete(stored, key)
			} else {
				stored[key] = w.record.SettlementEntry()
			}
		}
	}
	return stored, nil
}

// enter writes entries. It writes a settlement into the row of its decision.
func (a *appending) enter(entries []*storage.Entry) error {
	var rows []entryRow
	var settle []mongo.WriteModel
	for _, e := range entries {
		if e.Kind == storage.SettlementEntry {
			settle = append(settle, mongo.NewUpdateOneModel().SetFilter(doc("_id", a.settled[string(entryKey(e))])).
				SetUpdate(set(recordSettlement, settlementRow(e))))
			continue
		}
		at, err := uuid.NewV7()
		if err != nil {
			return err
		}
		rows = append(rows, entryRow{
			Key: entryKey(e), Org: e.OrganizationID, Kind: string(e.Kind), At: slices.Clone(at[:]), Body: e.Body,
			Sig: e.Sig, KeyID: e.KeyID,
		})
	}
	if len(settle) > 0 {
		if _, err := a.s.records().BulkWrite(a.ctx, settle); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := a.s.entries().InsertMany(a.ctx, rows)
	return err
}
