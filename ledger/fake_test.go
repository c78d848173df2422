package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"writ/ledger/receipt"
	"writ/storage"
)

// fault is how a Commit of the fake store fails.
type fault int

const (
	none      fault = iota
	lost            // failed and lost
	persisted       // failed but persisted
)

var errFault = errors.New("injected fault")

// fake is a store in memory that polices its caller: what it was given must
// never change afterwards, and heads must extend the chain.
type fake struct {
	// commitGate, if set, is told of each batch when Commit is called, which
	// then waits to be let through. Set before use.
	commitGate chan gated

	mu         sync.Mutex
	faults     []fault // of the next commits
	headErr    error   // LastHead's
	meterErr   error   // Metered's
	decidedErr error   // Decided's
	removed    bool    // Decided finds records removed
	loads      int     // calls of Metered
	answer     func(batch, existing []*storage.Record) []*storage.Record
	foreign    *receipt.SignedHead // what LastHead returns instead

	rows    map[[2]string]row
	order   []row
	heads   []receipt.SignedHead
	batches []int
}

// row is a record as it was given and as it was then.
type row struct {
	record *storage.Record
	bytes  string
}

// gated is a commit at the gate. It goes on when open is closed.
type gated struct {
	size int
	open chan struct{}
}

func newFake() *fake { return &fake{rows: make(map[[2]string]row)} }

func (f *fake) Commit(ctx context.Context, batch []*storage.Record, seal storage.Seal) ([]*storage.Record, error) {
	if f.commitGate != nil {
		g := gated{size: len(batch), open: make(chan struct{})}
		f.commitGate <- g
		select {
		case <-g.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batches = append(f.batches, len(batch))
	what := none
	if len(f.faults) > 0 {
		what, f.faults = f.faults[0], f.faults[1:]
	}
	existing, fresh := f.splitLocked(batch)
	if len(fresh) > 0 {
		if err := f.sealLocked(fresh, seal, what); err != nil {
			return nil, err
		}
	}
	if what != none {
		return nil, errFault
	}
	if f.answer != nil {
		return f.answer(batch, existing), nil
	}
	return existing, nil
}

func (f *fake) Decided(_ context.Context, org, intentID string) (*storage.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.decidedErr != nil {
		return nil, f.decidedErr
	}
	r, ok := f.rows[[2]string{org, intentID}]
	switch {
	case !ok:
		return nil, storage.ErrNotFound
	case f.removed:
		return &storage.Record{OrganizationID: org, IntentID: intentID}, nil
	}
	return r.decode(), nil
}

func (f *fake) splitLocked(batch []*storage.Record) (existing, fresh []*storage.Record) {
	existing = make([]*storage.Record, len(batch))
	first := make(map[[2]string]*storage.Record)
	for i, r := range batch {
		key := [2]string{r.OrganizationID, r.IntentID}
		if old, ok := f.rows[key]; ok {
			existing[i] = old.decode()
		} else if first[key] != nil {
			existing[i] = first[key]
		} else {
			first[key] = r
			fresh = append(fresh, r)
		}
	}
	return existing, fresh
}

func (f *fake) sealLocked(fresh []*storage.Record, seal storage.Seal, what fault) error {
	fresh, head, err := seal(fresh)
	if err != nil {
		return fmt.Errorf("sealing: %w", err)
	}
	if what == lost || len(fresh) == 0 {
		return nil
	}
	if int(head.Size) != len(fresh) {
		return fmt.Errorf("head over %d records, want %d", head.Size, len(fresh))
	}
	f.heads = append(f.heads, head)
	for _, r := range fresh {
		kept := row{record: r, bytes: encode(r)}
		f.rows[[2]string{r.OrganizationID, r.IntentID}] = kept
		f.order = append(f.order, kept)
	}
	return nil
}

func (f *fake) LastHead(context.Context) (receipt.SignedHead, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.headErr != nil:
		return receipt.SignedHead{}, f.headErr
	case f.foreign != nil:
		return *f.foreign, nil
	case len(f.heads) == 0:
		return receipt.SignedHead{}, storage.ErrNotFound
	}
	return f.heads[len(f.heads)-1], nil
}

func (f *fake) Heads(_ context.Context, from uint64, visit func(receipt.SignedHead) error) error {
	f.mu.Lock()
	heads := slices.Clone(f.heads)
	f.mu.Unlock()
	for _, h := range heads {
		if h.Seq < from {
			continue
		}
		if err := visit(h); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Metered(_ context.Context, org string, month storage.Month) (n int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	for _, r := range f.order {
		if r.record.OrganizationID == org && storage.MonthOf(r.record.DecidedAt) == month {
			n++
		}
	}
	return n, f.meterErr
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

func (r row) decode() *storage.Record {
	var out storage.Record
	if err := json.Unmarshal([]byte(r.bytes), &out); err != nil {
		panic(err)
	}
	return &out
}

// check holds all of the store's state to what a ledger promises.
func (f *fake) check(t *testing.T, keys receipt.Keys) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.heads) > 0 {
		from := receipt.Chain{ID: f.heads[0].Chain}
		if _, err := receipt.VerifyChain(from, slices.Values(f.heads), keys); err != nil {
			t.Errorf("VerifyChain = %v", err)
		}
	}
	sealed := 0
	for _, h := range f.heads {
		sealed += int(h.Size)
	}
	if sealed != len(f.order) {
		t.Errorf("heads cover %d records, the store has %d", sealed, len(f.order))
	}
	ids := make(map[string]bool)
	for _, r := range f.order {
		ids[r.record.DecisionID] = true
		if got := encode(r.record); got != r.bytes {
			t.Errorf("a stored record was changed:\n got %s\nwant %s", got, r.bytes)
		}
		f.checkReceiptLocked(t, r.record, keys)
	}
	if len(ids) != len(f.order) {
		t.Errorf("%d decision ids for %d decisions", len(ids), len(f.order))
	}
}

func (f *fake) checkReceiptLocked(t *testing.T, r *storage.Record, keys receipt.Keys) {
	t.Helper()
	if err := receipt.Verify(r.Receipt, keys, r.DecidedAt); err != nil {
		t.Errorf("Verify(receipt of %s) = %v", r.DecisionID, err)
		return
	}
	if err := receipt.VerifyPayload(r.Receipt, Payload(r)); err != nil {
		t.Errorf("VerifyPayload(receipt of %s) = %v", r.DecisionID, err)
	}
	head, err := r.Receipt.SignedHead()
	if err != nil {
		t.Errorf("SignedHead of %s: %v", r.DecisionID, err)
		return
	}
	if head != f.heads[head.Seq-1] {
		t.Errorf("the receipt of %s stands under a head that the store lacks", r.DecisionID)
	}
}
