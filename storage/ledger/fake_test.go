package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"writ/storage"
	"writ/storage/receipt"
)

// fault is how a Commit of the fake store fails.
type fault int

const (
	none      fault = iota
	lost            // failed and lost
	persisted       // failed but persisted
)

var errFault = fmt.Errorf("injected fault: %w", storage.ErrUnknown)

// fake is a store in memory that polices its caller: what it was given must
// never change afterwards, and heads must extend the chain.
type fake struct {
	// commitGate, if set, is told of each batch when Commit is called, which
	// then waits to be let through. Set before use.
	commitGate chan gated

	mu         sync.Mutex
	faults     []fault // of the next commits
	down       error   // Append's, whatever the faults
	headErr    error   // Tip's
	quotaErr   error   // Count's
	decidedErr error   // Decided's
	removed    bool    // Decided finds records removed
	grants     int     // calls of Count
	held       map[quotaKey]int64
	answer     func(batch, existing []*storage.Record) []*storage.Record

	rows    map[[2]string]row
	order   []row
	entries []*storage.Entry
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

func newFake() *fake {
	return &fake{rows: make(map[[2]string]row), held: make(map[quotaKey]int64)}
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
	existing, fresh := f.splitLocked(batch)
	if len(fresh.Records)+len(fresh.Entries) > 0 {
		if err := f.sealLocked(fresh, seal, what); err != nil {
			return storage.Batch{}, err
		}
	}
	if what != none {
		return storage.Batch{}, errFault
	}
	if f.answer != nil {
		existing.Records = f.answer(batch.Records, existing.Records)
	}
	return existing, nil
}

func (f *fake) Decided(_ context.Context, org, intentID, _ string) (*storage.Record, error) {
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

func (f *fake) splitLocked(batch storage.Batch) (existing, fresh storage.Batch) {
	existing.Records = make([]*storage.Record, len(batch.Records))
	first := make(map[[2]string]*storage.Record)
	for i, r := range batch.Records {
		key := [2]string{r.OrganizationID, r.IntentID}
		if old, ok := f.rows[key]; ok {
			existing.Records[i] = old.decode()
		} else if first[key] != nil {
			existing.Records[i] = first[key]
		} else {
			first[key] = r
			fresh.Records = append(fresh.Records, r)
		}
	}
	existing.Entries = make([]*storage.Entry, len(batch.Entries))
	for i, e := range batch.Entries {
		if existing.Entries[i] = f.entryLocked(e, fresh.Entries); existing.Entries[i] == nil {
			fresh.Entries = append(fresh.Entries, e)
		}
	}
	return existing, fresh
}

// entryLocked returns what stands in place of e, behind those of its batch.
func (f *fake) entryLocked(e *storage.Entry, batch []*storage.Entry) *storage.Entry {
	for _, old := range slices.Concat(f.entries, batch) {
		if old.Kind == e.Kind && old.OrganizationID == e.OrganizationID && old.Key == e.Key {
			return old
		}
	}
	if e.Kind == storage.SettlementEntry && (f.removed || f.recordLocked(e.OrganizationID, e.Key) == nil) {
		return &storage.Entry{Kind: e.Kind, OrganizationID: e.OrganizationID, Key: e.Key}
	}
	return nil
}

// recordLocked returns the record of a decision with its settlement, or nil.
func (f *fake) recordLocked(org, decisionID string) *storage.Record {
	for _, r := range f.order {
		if r.record.OrganizationID != org || r.record.DecisionID != decisionID {
			continue
		}
		out := r.decode()
		for _, e := range f.entries {
			if e.Kind == storage.SettlementEntry && e.OrganizationID == org && e.Key == decisionID {
				settled := *e.Settlement
				settled.Receipt = &e.Inclusion
				out.Settlement = &settled
			}
		}
		return out
	}
	return nil
}

func (f *fake) Record(_ context.Context, org, decisionID string) (*storage.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.recordLocked(org, decisionID); r != nil {
		return r, nil
	}
	return nil, storage.ErrNotFound
}

func (f *fake) sealLocked(fresh storage.Batch, seal storage.Seal, what fault) error {
	tip := f.tipLocked()
	fresh, head, err := seal(tip, fresh)
	if err != nil {
		return fmt.Errorf("sealing: %w", err)
	}
	n := len(fresh.Records) + len(fresh.Entries)
	if what == lost || n == 0 {
		return nil
	}
	if int(head.Size) != n {
		return fmt.Errorf("head over %d leaves, want %d", head.Size, n)
	}
	if head.Chain != tip.ID || head.Seq != tip.Seq+1 || head.Prev != tip.Prev {
		return storage.ErrConflict
	}
	f.heads = append(f.heads, head)
	f.entries = append(f.entries, fresh.Entries...)
	for _, r := range fresh.Records {
		kept := row{record: r, bytes: encode(r)}
		f.rows[[2]string{r.OrganizationID, r.IntentID}] = kept
		f.order = append(f.order, kept)
		if key := (quotaKey{r.OrganizationID, storage.MonthOf(r.DecidedAt)}); f.held[key] > 0 {
			f.held[key]--
		}
	}
	return nil
}

func (f *fake) tipLocked() receipt.Chain {
	tip := receipt.Chain{ID: [16]byte{'f'}}
	if n := len(f.heads); n > 0 {
		tip = tip.Next(f.heads[n-1].Head)
	}
	return tip
}

func (f *fake) Tip(context.Context) (receipt.Chain, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tipLocked(), f.headErr
}

func (f *fake) Chains(context.Context, func(receipt.Chain) error) error { return nil }

func (f *fake) Entry(context.Context, string, storage.EntryKind, string) (*storage.Entry, error) {
	return nil, storage.ErrNotFound
}

func (f *fake) Entries(context.Context, string, storage.EntryKind, storage.Page) ([]*storage.Entry, string, error) {
	return nil, "", nil
}

func (f *fake) Heads(_ context.Context, _ [16]byte, from uint64, visit func(receipt.SignedHead) error) error {
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

// grant has another handle ask for up to 10 places within a limit of 10.
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
		if r.record.OrganizationID == key.org && storage.MonthOf(r.record.DecidedAt) == key.month {
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
	if sealed != len(f.order)+len(f.entries) {
		t.Errorf("heads cover %d leaves, the store has %d records and %d entries", sealed, len(f.order), len(f.entries))
	}
	for _, e := range f.entries {
		if h, err := e.SignedHead(receipt.EntryLeaf(e.Body)); err != nil || h != f.heads[h.Seq-1] {
			t.Errorf("the receipt of %s %s stands under a head that the store lacks: %v", e.Kind, e.Key, err)
		}
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
