package mongodb

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/storagetest/forged"
)

func TestForged(t *testing.T) {
	t.Parallel()
	o := newDatabase(t, sharedSet(t))
	d, err := connect(t.Context(), o)
	must(t, err)
	s := &Store{database: d}
	must(t, s.makeCollections(t.Context()))
	t.Cleanup(func() {
		if err := s.client.Disconnect(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Disconnect = %v", err)
		}
	})
	forged.Run(t, forged.Backend{Unique: true, Load: func(t *testing.T, h *forged.History) ledger.History {
		loadHistory(t, s, h)
		r, err := OpenSnapshot(t.Context(), o)
		must(t, err)
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
		return r
	}})
}

// loadHistory replaces the history in s with h. It stores every head of h as already counted.
func loadHistory(t *testing.T, s *Store, h *forged.History) {
	t.Helper()
	ctx, rows := t.Context(), make(map[string][]any)
	add := func(name string, row any) { rows[name] = append(rows[name], row) }
	add(countersName, doc("_id", epochCounter, "n", int64(0)))
	add(countersName, doc("_id", schemaCounter, "n", int64(schema), "least", int64(oldestSchema)))
	last := make(map[string]bool)
	for _, d := range h.Documents {
		last[d.Org] = true
	}
	for _, c := range h.Waiting {
		last[c.Org] = true
	}
	for org := range last {
		add(countersName, doc("_id", orderOf(org), "n", number(h.LastRevision())))
	}
	for id, heads := range h.ByChain {
		add(replicasName, slotRow{ID: int64(len(rows[replicasName]) + 1), Chain: id[:], Told: never, Sessions: []sessionID{}})
		for i, head := range heads {
			signed, err := head.MarshalBinary()
			must(t, err)
			add(headsName, headRow{ID: headKey(id, int64(head.Seq)), Head: signed, Meters: []meterTick{}})
			if i == len(heads)-1 {
				add(countersName, doc("_id", countedKey(id), "n", int64(head.Seq)))
			}
		}
	}
	ids := make(decisionIDs)
	for _, r := range h.Records {
		ids[r] = uuid.MustParse(r.DecisionID)
	}
	for _, e := range h.Others {
		at, err := uuid.NewV7()
		must(t, err)
		add(entriesName, entryRow{Key: entryKey(e), Org: e.OrganizationID, Kind: string(e.Kind), At: at[:], Body: e.Body, Sig: e.Sig, KeyID: e.KeyID})
	}
	for _, left := range h.Graves {
		id := uuid.MustParse(left.DecisionID)
		add(recordsName, newTombstone(keyOf(t, left.OrganizationID, left.IntentID, left.ApprovalID), id, left.Leaves, left.Imported))
	}
	for _, d := range h.Documents {
		c := storage.CollectionOf(d.Kind)
		foundBy, _, _, err := c.Describe(d)
		must(t, err)
		key := documentKey(c, d.Org, d.ID)
		add(documentsName, documentRow{Key: key, Org: d.Org, Revision: number(d.Revision), Value: string(d.Value)})
		for _, at := range positions(d, foundBy) {
			add(indexName, doc("_id", at, "d", key))
		}
	}
	for _, c := range h.Waiting {
		add(changesName, newChangeRow(c.Org, c.Revision, []storage.Change{c}))
	}
	for m, n := range h.Meters {
		of := meter{m.Org, m.Month}
		add(quotasName, quotaRow{Key: of.key(), Meter: of, N: n, Given: []placesRow{}})
	}
	for _, shape := range shapes(schema) {
		c := s.db.Collection(shape.name)
		if _, err := c.DeleteMany(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
		if len(rows[shape.name]) == 0 {
			continue
		}
		if _, err := c.InsertMany(ctx, rows[shape.name]); err != nil {
			t.Fatal(err)
		}
	}
	must(t, s.insertRows(ctx, h.Records, ids))
}
