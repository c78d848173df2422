package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// fault is a way in which the fake store's Append fails.
type fault int

const (
	none      fault = iota
	lost            // Append fails, and the batch is lost
	persisted       // Append fails, but the batch is stored
)

var errFault = fmt.Errorf("injected fault: %w", storage.ErrUnknown)

// fake is a store in memory. It checks that stored records never change, and that each head extends
// the chain.
type fake struct {
	*storagetest.LogHandle
	log *storagetest.MemoryLog

	// commitGate receives each batch when Append is called. Append then waits until the test opens
	// the gate. A nil commitGate means no waiting. It must be set before the store is used.
	commitGate chan gated

	mu         sync.Mutex
	faults     []fault // the faults of the next calls of Append
	down       error   // the error of every Append, regardless of faults
	headErr    error   // the error of Tip
	quotaErr   error   // the error of Count
	decidedErr error   // the error of Decided
	removed    bool    // Decided and Append report every record as removed
	grants     int     // the number of calls of Count
	held       map[quotaKey]int64
	answer     func(batch, existing []*storage.Record) []*storage.Record

	order   []row
	entries []*storage.Entry
	heads   []receipt.SignedHead
	batches []int
}

// row is a stored record together with its encoding when it was stored.
type row struct {
	record *storage.Record
	bytes  string
}

// gated is a commit that waits at the gate until the test closes the channel.
type gated struct {
	size int
	open chan struct{}
}

func newFake() *fake { return fakeOn(storagetest.NewMemoryLog()) }

// fakeOn returns a store on log. Several stores may share one log.
func fakeOn(log *storagetest.MemoryLog) *fake {
	return &fake{LogHandle: log.OpenLog(), log: log, held: make(map[quotaKey]int64)}
}

func (f *fake) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	if f.commitGate != nil {
		g := gated{size: len(batch.Records), open: make(chan struct{})}
		f.commitGate <- g
		select {
		case <-g.open:
		case <-ctx.Done():
			return storage.Batch{}, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batches = append(f.batches, len(batch.Records))
	what := none
	if len(f.faults) > 0 {
		what, f.faults = f.faults[0], f.faults[1:]
	}
	if f.down != nil {
		return storage.Batch{}, f.down
	}
	if f.removed {
		existing := storage.Batch{Records: make([]*storage.Record, len(batch.Records))}
		for _, e := range batch.Entries {
			existing.Entries = append(existing.Entries, &storage.Entry{Kind: e.Kind, OrganizationID: e.OrganizationID, Key: e.Key})
		}
		return existing, nil
	}
	var sealed storage.Batch
	var head receipt.SignedHead
	existing, err := f.LogHandle.Append(ctx, batch, func(tip receipt.Chain, fresh storage.Batch) (_ storage.Batch, _ receipt.SignedHead, err error) {
		if sealed, head, err = seal(tip, fresh); err != nil {
			return sealed, head, fmt.Errorf("sealing: %w", err)
		}
		if what == lost {
			sealed = storage.Batch{}
		}
		return sealed, head, nil
	})
	if err != nil {
		return storage.Batch{}, err
	}
	f.keepLocked(sealed, head)
	if what != none {
		return storage.Batch{}, errFault
	}
	if f.answer != nil {
		existing.Records = f.answer(batch.Records, existing.Records)
	}
	return existing, nil
}

// keepLocked remembers the stored records with their current encoding.
func (f *fake) keepLocked(sealed storage.Batch, head receipt.SignedHead) {
	if len(sealed.Records)+len(sealed.Entries) == 0 {
		return
	}
	f.heads = append(f.heads, head)
	f.entries = append(f.entries, sealed.Entries...)
	for _, r := range sealed.Records {
		f.order = append(f.order, row{record: r, bytes: encode(r)})
		if key := (quotaKey{r.OrganizationID, storage.MonthOf(r.DecidedAt)}); r.Metered() && f.held[key] > 0 {
			f.held[key]--
		}
	}
}

func (f *fake) Decided(ctx context.Context, org, intentID, approvalID string) (*storage.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.decidedErr != nil:
		return nil, f.decidedErr
	case f.removed:
		return &storage.Record{OrganizationID: org, IntentID: intentID}, nil
	}
	return f.LogHandle.Decided(ctx, org, intentID, approvalID)
}

func (f *fake) Tip(ctx context.Context) (receipt.Chain, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.headErr != nil {
		return receipt.Chain{}, f.headErr
	}
	return f.LogHandle.Tip(ctx)
}

func (f *fake) Scarce(_ context.Context, meters []storage.Window) ([]bool, error) {
	return make([]bool, len(meters)), nil
}

func (f *fake) Count(_ context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.grants++
	key := quotaKey{w.Org, w.Month}
	for _, back := range ask.Back {
		if back.N > f.held[key] {
			return storage.Granted{}, fmt.Errorf("%d places returned of %d", back.N, f.held[key])
		}
		f.held[key] -= back.N
	}
	if f.quotaErr != nil {
		return storage.Granted{}, f.quotaErr
	}
	taken := f.meteredLocked(key) + f.held[key]
	n := min(ask.Want, max(0, ask.Limit-taken))
	f.held[key] += n
	return storage.Granted{N: n, Total: taken + n}, nil
}

// grant requests up to 10 places within a limit of 10, as another handle would.
func (f *fake) grant(t *testing.T) int64 {
	t.Helper()
	granted, err := f.Count(t.Context(), storage.Window{Org: "acme", Month: storage.MonthOf(noon)}, storage.Ask{Limit: 10, Want: 10})
	must(t, err)
	return granted.N
}

func (f *fake) metered(org string, month storage.Month) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.meteredLocked(quotaKey{org, month})
}

func (f *fake) meteredLocked(key quotaKey) (n int64) {
	for _, r := range f.order {
		if r.record.Metered() && r.record.OrganizationID == key.org && storage.MonthOf(r.record.DecidedAt) == key.month {
			n++
		}
	}
	return n
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func encode(r *storage.Record) string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// check checks the whole store: history, heads and records.
func (f *fake) check(t *testing.T, keys receipt.Keys) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	// The proof is partial, because this store does not have the documents whose changes are
	// signed.
	proof, err := Prove(t.Context(), f.log, ProveConfig{Keys: keys, Partial: true})
	if err != nil || proof.Unlisted != 0 || proof.Heads != len(f.heads) {
		t.Errorf("Prove = %+v, %v, want all under %d heads", proof, err, len(f.heads))
	}
	sealed := 0
	for _, h := range f.heads {
		sealed += int(h.Size)
	}
	if sealed != len(f.order)+len(f.entries) {
		t.Errorf("heads cover %d leaves, the store has %d records and %d entries", sealed, len(f.order), len(f.entries))
	}
	ids := make(map[string]bool)
	for _, r := range f.order {
		ids[r.record.DecisionID] = true
		if got := encode(r.record); got != r.bytes {
			t.Errorf("a stored record was changed:\n got %s\nwant %s", got, r.bytes)
		}
		if err := receipt.Verify(r.record.Receipt, keys, r.record.DecidedAt); err != nil {
			t.Errorf("Verify(receipt of %s) = %v", r.record.DecisionID, err)
		}
	}
	if len(ids) != len(f.order) {
		t.Errorf("%d decision ids for %d decisions", len(ids), len(f.order))
	}
}
