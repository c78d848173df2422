package storagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// world is a store together with the records that the store should have. Several goroutines may
// call its methods.
type world struct {
	Checks
	storage.Store
	writer *Writer
	ctx    context.Context

	mu sync.Mutex
	// records has the committed records by organization and intent.
	records map[string]map[string]*storage.Record
}

func newWorld(t *testing.T, s storage.Store) *world {
	return &world{
		Checks: Checks{t}, Store: s, writer: NewWriter(), ctx: t.Context(),
		records: make(map[string]map[string]*storage.Record),
	}
}

func (w *world) record(org string, change ...func(*storage.Record)) *storage.Record {
	return w.writer.Record(org, change...)
}

func (w *world) again(r *storage.Record) *storage.Record { return w.writer.Again(r) }

func (w *world) tip() receipt.Chain {
	w.Helper()
	tip, err := w.Tip(w.ctx)
	if err != nil {
		w.Errorf("Tip = %v", err)
	}
	return tip
}

func (w *world) append(seal storage.Seal, records ...*storage.Record) ([]*storage.Record, error) {
	existing, err := w.Append(w.ctx, storage.Batch{Records: records}, seal)
	return existing.Records, err
}

func (w *world) settle(r *storage.Record, s storage.Settlement) *storage.Entry {
	w.Helper()
	earlier, err := w.writer.Settle(w.ctx, w.Store, r, s)
	w.noErr("Append of a settlement", err)
	return earlier
}

// noSeal is a seal that fails. An append without new records or entries must not return its error.
func (w *world) noSeal(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
	return storage.Batch{}, receipt.SignedHead{}, errors.New("this seal fails")
}

// commit commits batch. It remembers the records whose intents are new.
func (w *world) commit(batch ...*storage.Record) []*storage.Record {
	w.Helper()
	existing, err := w.writer.Commit(w.ctx, w.Store, batch...)
	if err != nil || len(existing) != len(batch) {
		w.Errorf("Commit of %d records = %d existing, %v; want %d, nil", len(batch), len(existing), err, len(batch))
		return make([]*storage.Record, len(batch))
	}
	for i, r := range batch {
		if existing[i] == nil {
			w.remember(r)
		}
	}
	return existing
}

func (w *world) remember(r *storage.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.records[r.OrganizationID] == nil {
		w.records[r.OrganizationID] = make(map[string]*storage.Record)
	}
	if before := w.records[r.OrganizationID][r.IntentKey()]; before != nil && before != r {
		w.Errorf("Commit took intent %s as first twice", r.IntentID)
	}
	w.records[r.OrganizationID][r.IntentKey()] = r
}

// history returns all records that a filter selects. It reads pages of limit records.
func (w *world) history(org string, f storage.Filter, limit int) []*storage.Record {
	w.Helper()
	return All(w, limit, func(p storage.Page) ([]*storage.Record, string, error) {
		return w.ListRecords(w.ctx, org, f, p)
	})
}

func (w *world) wantMeter(org string, month storage.Month, want int64) {
	w.Helper()
	got, err := w.Metered(w.ctx, org, month)
	w.Must("Metered", err)
	if got != want {
		w.Errorf("Metered(%q, %d) = %d, want %d", org, month, got, want)
	}
}

// check calls [Check] and compares the history with the committed records.
func (w *world) check() {
	w.Helper()
	history := Check(w.T, w.Store, w.writer.Keys(w.T), slices.Collect(maps.Keys(w.records))...)
	for org, intents := range w.records {
		want := slices.SortedFunc(maps.Values(intents), func(a, b *storage.Record) int {
			return strings.Compare(b.DecisionID, a.DecisionID)
		})
		w.WantSame(fmt.Sprintf("history of %q", org), history[org], want)
	}
}
