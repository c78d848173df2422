package storagetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// MemoryLog keeps a history in memory. Any number of handles can write to it, each with its own
// chain. The exported fields are the stored history, so that a test can forge rows. A MemoryLog is
// also a ledger.History. It stores no meters and no documents.
type MemoryLog struct {
	mu      sync.Mutex
	ByChain map[[16]byte][]receipt.SignedHead
	Records []*storage.Record
	Others  []*storage.Entry // all entries except settlements, which are in Records
	Graves  []*storage.Tombstone
	opened  int
}

// LogHandle is a handle of a MemoryLog.
type LogHandle struct {
	m   *MemoryLog
	end receipt.Chain // the end of the chain, as last known to the handle
}

// NewMemoryLog returns an empty log.
func NewMemoryLog() *MemoryLog {
	return &MemoryLog{ByChain: make(map[[16]byte][]receipt.SignedHead)}
}

// OpenLog returns a new handle with a new chain.
func (m *MemoryLog) OpenLog() *LogHandle {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	return &LogHandle{m, receipt.Chain{ID: [16]byte{byte(m.opened)}}}
}

// takeOver returns a new handle that continues the chain of h. h can no longer write.
func (m *MemoryLog) takeOver(h *LogHandle) *LogHandle {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &LogHandle{m, m.tip(h.end.ID)}
}

func (m *MemoryLog) tip(chain [16]byte) receipt.Chain {
	tip := receipt.Chain{ID: chain}
	if heads := m.ByChain[chain]; len(heads) > 0 {
		tip = tip.Next(heads[len(heads)-1].Head)
	}
	return tip
}

// Append implements storage.Log.
func (h *LogHandle) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (existing storage.Batch, err error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return existing, err
	}
	var fresh storage.Batch
	for _, r := range batch.Records {
		earlier := cmp.Or(h.m.intent(r.OrganizationID, r.IntentKey()), find(fresh.Records, ofIntent(r.OrganizationID, r.IntentKey())))
		if existing.Records = append(existing.Records, earlier); earlier == nil {
			fresh.Records = append(fresh.Records, r)
		}
	}
	for _, e := range batch.Entries {
		earlier := cmp.Or(h.m.entry(e), find(fresh.Entries, sameEntry(e)))
		if existing.Entries = append(existing.Entries, earlier); earlier == nil {
			fresh.Entries = append(fresh.Entries, e)
		}
	}
	if len(fresh.Records)+len(fresh.Entries) == 0 {
		return existing, nil
	}
	tip := h.end
	sealed, head, err := seal(tip, fresh)
	switch n := len(sealed.Records) + len(sealed.Entries); {
	case err != nil || n == 0:
		return existing, err
	case tip != h.m.tip(tip.ID), head.Chain != tip.ID || head.Seq != tip.Seq+1 || head.Prev != tip.Prev || int(head.Size) != n:
		return storage.Batch{}, storage.ErrConflict
	}
	h.m.ByChain[tip.ID] = append(h.m.ByChain[tip.ID], head)
	h.end = tip.Next(head.Head)
	h.m.Records = append(h.m.Records, sealed.Records...)
	for _, e := range sealed.Entries {
		h.m.enter(e)
	}
	return existing, nil
}

func find[T any](all []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}

func ofIntent(org, key string) func(*storage.Record) bool {
	return func(r *storage.Record) bool { return r.OrganizationID == org && r.IntentKey() == key }
}

func sameEntry(e *storage.Entry) func(*storage.Entry) bool {
	return func(other *storage.Entry) bool {
		return other.Kind == e.Kind && other.OrganizationID == e.OrganizationID && other.Key == e.Key
	}
}

// intent returns the record of an intent, or nil if the intent was never decided. After retention
// the record has Removed set.
func (m *MemoryLog) intent(org, key string) *storage.Record {
	if t := find(m.Graves, func(t *storage.Tombstone) bool { return t.OrganizationID == org && t.IntentKey() == key }); t != nil {
		return &storage.Record{OrganizationID: org, IntentID: t.IntentID, ApprovalID: t.ApprovalID, DecisionID: t.DecisionID}
	}
	return find(m.Records, ofIntent(org, key))
}

// entry returns the stored entry with the kind, organization and key of e, or nil.
func (m *MemoryLog) entry(e *storage.Entry) *storage.Entry {
	if e.Kind != storage.SettlementEntry {
		return find(m.Others, sameEntry(e))
	}
	switch r := m.record(e.OrganizationID, e.Key); {
	case r == nil:
		return &storage.Entry{Kind: e.Kind, OrganizationID: e.OrganizationID, Key: e.Key}
	case r.Settlement != nil:
		return r.SettlementEntry()
	}
	return nil
}

func (m *MemoryLog) enter(e *storage.Entry) {
	if e.Kind != storage.SettlementEntry {
		m.Others = append(m.Others, e)
		return
	}
	for i, r := range m.Records {
		if r.OrganizationID == e.OrganizationID && r.DecisionID == e.Key {
			settled, settlement := *r, *e.Settlement
			settlement.Receipt, settled.Settlement = &e.Inclusion, &settlement
			m.Records[i] = &settled
		}
	}
}

func (m *MemoryLog) record(org, decisionID string) *storage.Record {
	return find(m.Records, func(r *storage.Record) bool { return r.OrganizationID == org && r.DecisionID == decisionID })
}

// Decided implements storage.Log.
func (h *LogHandle) Decided(_ context.Context, org, intentID, approvalID string) (*storage.Record, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if r := h.m.intent(org, storage.IntentKey(intentID, approvalID)); r != nil {
		return r, nil
	}
	return nil, storage.ErrNotFound
}

// Entry implements storage.Log.
func (h *LogHandle) Entry(_ context.Context, org string, kind storage.EntryKind, key string) (*storage.Entry, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if e := find(h.m.Others, sameEntry(&storage.Entry{Kind: kind, OrganizationID: org, Key: key})); e != nil {
		return e, nil
	}
	return nil, storage.ErrNotFound
}

// Record implements storage.History.
func (h *LogHandle) Record(_ context.Context, org, decisionID string) (*storage.Record, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if r := h.m.record(org, decisionID); r != nil {
		return r, nil
	}
	return nil, storage.ErrNotFound
}

// Entries implements storage.Log. It returns all entries as one page.
func (h *LogHandle) Entries(ctx context.Context, org string, kind storage.EntryKind, _ storage.Page) (entries []*storage.Entry, next string, err error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	for _, e := range slices.Backward(h.m.Others) {
		if e.OrganizationID == org && e.Kind == kind {
			entries = append(entries, e)
		}
	}
	return entries, "", ctx.Err()
}

// Tip implements storage.Log.
func (h *LogHandle) Tip(context.Context) (receipt.Chain, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return h.end, nil
}

// Heads implements storage.Log.
func (h *LogHandle) Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error {
	return h.m.Heads(ctx, chain, from, f)
}

// Chains implements storage.Log.
func (h *LogHandle) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	return h.m.Chains(ctx, f)
}

// Bury replaces the oldest record of org with a tombstone, as retention does.
func (m *MemoryLog) Bury(org string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.Records, func(r *storage.Record) bool { return r.OrganizationID == org })
	if i < 0 {
		return storage.ErrNotFound
	}
	r := m.Records[i]
	leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
	if err != nil {
		return fmt.Errorf("burying %s: %w", r.DecisionID, err)
	}
	t := &storage.Tombstone{OrganizationID: org, IntentID: r.IntentID, ApprovalID: r.ApprovalID, DecisionID: r.DecisionID, Leaves: []receipt.Leaf{leaf}}
	if r.Settlement != nil {
		if leaf, err = r.Settlement.Receipt.Leaf(receipt.EntryLeaf(r.SettlementEntry().Body)); err != nil {
			return fmt.Errorf("burying the settlement of %s: %w", r.DecisionID, err)
		}
		t.Leaves = append(t.Leaves, leaf)
	}
	m.Graves, m.Records = append(m.Graves, t), slices.Delete(m.Records, i, i+1)
	return nil
}

// Chains calls f with the end of each chain that has heads.
func (m *MemoryLog) Chains(_ context.Context, f func(receipt.Chain) error) error {
	m.mu.Lock()
	var ends []receipt.Chain
	for chain := range m.ByChain {
		ends = append(ends, m.tip(chain))
	}
	m.mu.Unlock()
	return each(ends, f)
}

// Heads calls f for the heads of a chain, beginning at a sequence.
func (m *MemoryLog) Heads(_ context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error {
	m.mu.Lock()
	heads := slices.Clone(m.ByChain[chain])
	m.mu.Unlock()
	for _, h := range heads {
		if h.Seq < from {
			continue
		}
		if err := f(h); err != nil {
			return err
		}
	}
	return nil
}

// Organizations calls f for each organization that has rows.
func (m *MemoryLog) Organizations(_ context.Context, f func(org string) error) error {
	orgs := make(map[string]bool)
	for _, r := range m.Records {
		orgs[r.OrganizationID] = true
	}
	return each(slices.Sorted(maps.Keys(orgs)), f)
}

// EachEntry calls f for the entries that are not settlements.
func (m *MemoryLog) EachEntry(_ context.Context, f func(*storage.Entry) error) error {
	return each(m.Others, f)
}

// EachTombstone calls f for the tombstones of org, or of all organizations if org is empty.
func (m *MemoryLog) EachTombstone(_ context.Context, org string, f func(*storage.Tombstone) error) error {
	return each(m.Graves, func(t *storage.Tombstone) error {
		if org != "" && t.OrganizationID != org {
			return nil
		}
		return f(t)
	})
}

// EachRow calls f for the rows of org with ids in (after, upTo].
func (m *MemoryLog) EachRow(_ context.Context, org, after, upTo string, f func(*storage.Record) error) error {
	for _, r := range m.Records {
		if r.OrganizationID == org && r.DecisionID > after && (upTo == "" || r.DecisionID <= upTo) {
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// View calls f with a reader that has no documents.
func (m *MemoryLog) View(ctx context.Context, f func(storage.Reader) error) error {
	return f(&memoryTx{ctx: ctx})
}

// Changes returns no changes.
func (m *MemoryLog) Changes(context.Context, storage.Change, int) ([]storage.Change, error) {
	return nil, nil
}

// CheckIndex counts the decisions and calls read.Meter with the counts. There is no index to check.
func (m *MemoryLog) CheckIndex(_ context.Context, read storage.IndexCheck) error {
	meters := make(map[memoryMeter]int64)
	for _, r := range m.Records {
		if chain, err := r.Receipt.Inclusion().Chain(); err == nil && m.ByChain[chain] != nil && r.Metered() {
			meters[memoryMeter{r.OrganizationID, storage.MonthOf(r.DecidedAt)}]++
		}
	}
	for _, t := range m.Graves {
		if id, ok := storage.ParseID(t.DecisionID); ok && !t.Imported && t.ApprovalID == "" && m.ByChain[t.Leaves[0].Chain] != nil {
			meters[memoryMeter{t.OrganizationID, storage.MonthOf(storage.IDTime(id))}]++
		}
	}
	if read.Meter == nil {
		return nil
	}
	for of, n := range meters {
		if err := read.Meter(of.org, of.month, n); err != nil {
			return err
		}
	}
	return nil
}

func each[T any](all []T, f func(T) error) error {
	for _, v := range all {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// Followed implements storage.Log. Each handle follows its own chain.
func (h *LogHandle) Followed(ctx context.Context) ([]receipt.Chain, error) {
	tip, err := h.Tip(ctx)
	return []receipt.Chain{tip}, err
}

// Rows implements storage.Log.
func (h *LogHandle) Rows(ctx context.Context, q storage.RowQuery, f func(storage.HeadRows) error) error {
	return h.m.Heads(ctx, q.Chain, q.From, func(head receipt.SignedHead) error { return f(h.m.rows(head, &q)) })
}

// rows returns the records of a head. Its count includes the records that were buried.
func (m *MemoryLog) rows(head receipt.SignedHead, q *storage.RowQuery) storage.HeadRows {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := storage.HeadRows{Seq: head.Seq}
	for _, t := range m.Graves {
		if l := t.Leaves[0]; l.Chain == head.Chain && l.Seq == head.Seq && (q.Org == "" || q.Org == t.OrganizationID) {
			rows.Count++
		}
	}
	for _, r := range m.Records {
		leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
		if err != nil || leaf.Chain != head.Chain || leaf.Seq != head.Seq || q.Org != "" && q.Org != r.OrganizationID {
			continue
		}
		if rows.Count++; !q.Bare {
			rows.Records = append(rows.Records, r)
		}
	}
	return rows
}

// Counts implements storage.Counter.
func (h *LogHandle) Counts(ctx context.Context, org string, by storage.CountedBy, from, to storage.Day, f func(storage.Count) error) error {
	h.m.mu.Lock()
	records := slices.Clone(h.m.Records)
	h.m.mu.Unlock()
	for _, r := range records {
		if day := storage.DayOf(r.DecidedAt); r.OrganizationID == org && r.CountedAs(by) != "" && from <= day && day < to {
			count := storage.Count{Value: r.CountedAs(by), Day: day}
			count.Hours[r.DecidedAt.UTC().Hour()]++
			if err := f(count); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
