package storagetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"writ/ledger/receipt"
	"writ/storage"
)

// memoryLog is what the handles on a Memory have decided.
type memoryLog struct {
	mu      sync.Mutex
	records map[[2]string]*storage.Record // by organization and intent
	entries []*storage.Entry
	chains  map[[16]byte][]receipt.SignedHead
	tips    map[[16]byte]receipt.Chain
	meters  map[memoryMeter]int64
	held    map[memoryMeter]map[*Handle]int64
}

type memoryMeter struct {
	org   string
	month storage.Month
}

func newMemoryLog() memoryLog {
	return memoryLog{
		records: make(map[[2]string]*storage.Record), chains: make(map[[16]byte][]receipt.SignedHead),
		tips: make(map[[16]byte]receipt.Chain), meters: make(map[memoryMeter]int64), held: make(map[memoryMeter]map[*Handle]int64),
	}
}

// Append implements storage.Log.
func (h *Handle) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (existing storage.Batch, err error) {
	l := &h.m.log
	l.mu.Lock()
	defer l.mu.Unlock()
	existing, fresh := l.divide(batch)
	if err := ctx.Err(); err != nil || len(fresh.Records)+len(fresh.Entries) == 0 {
		return existing, err
	}
	sealed, head, err := seal(h.tip, fresh)
	if err != nil || len(sealed.Records)+len(sealed.Entries) == 0 {
		return existing, err
	}
	if head.Chain != h.tip.ID || head.Seq != h.tip.Seq+1 || head.Prev != h.tip.Prev || head.Seq != l.tips[h.tip.ID].Seq+1 {
		return storage.Batch{}, fmt.Errorf("%w: head %d does not extend the chain", storage.ErrConflict, head.Seq)
	}
	h.tip = h.tip.Next(head.Head)
	l.tips[h.tip.ID], l.chains[h.tip.ID] = h.tip, append(l.chains[h.tip.ID], head)
	for _, r := range sealed.Records {
		kept := *r
		l.records[[2]string{r.OrganizationID, r.IntentID}] = &kept
		m := memoryMeter{r.OrganizationID, storage.MonthOf(r.DecidedAt)}
		l.meters[m]++
		if l.held[m][h] > 0 {
			l.held[m][h]--
		}
	}
	l.entries = append(l.entries, sealed.Entries...)
	return existing, nil
}

// divide finds what of batch is first, and what stands in place of the rest.
func (l *memoryLog) divide(batch storage.Batch) (existing, fresh storage.Batch) {
	existing = storage.Batch{Records: make([]*storage.Record, len(batch.Records)), Entries: make([]*storage.Entry, len(batch.Entries))}
	first := make(map[[2]string]*storage.Record)
	for i, r := range batch.Records {
		name := [2]string{r.OrganizationID, r.IntentID}
		if existing.Records[i] = cmp.Or(l.records[name], first[name]); existing.Records[i] == nil {
			first[name] = r
			fresh.Records = append(fresh.Records, r)
		}
	}
	for i, e := range batch.Entries {
		known := slices.Concat(l.entries, fresh.Entries)
		at := slices.IndexFunc(known, func(o *storage.Entry) bool {
			return o.Kind == e.Kind && o.OrganizationID == e.OrganizationID && o.Key == e.Key
		})
		if at < 0 {
			fresh.Entries = append(fresh.Entries, e)
		} else {
			existing.Entries[i] = known[at]
		}
	}
	return existing, fresh
}

// Decided implements storage.Log.
func (h *Handle) Decided(ctx context.Context, org, intentID string) (*storage.Record, error) {
	l := &h.m.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.records[[2]string{org, intentID}]; r != nil {
		return r, ctx.Err()
	}
	return nil, storage.ErrNotFound
}

// Entries implements storage.Log, on one page.
func (h *Handle) Entries(ctx context.Context, org string, kind storage.EntryKind, _ storage.Page) (entries []*storage.Entry, next string, err error) {
	l := &h.m.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.entries) {
		if e.OrganizationID == org && e.Kind == kind {
			entries = append(entries, e)
		}
	}
	return entries, "", ctx.Err()
}

// Tip implements storage.Log.
func (h *Handle) Tip(ctx context.Context) (receipt.Chain, error) {
	h.m.log.mu.Lock()
	defer h.m.log.mu.Unlock()
	return h.tip, ctx.Err()
}

// Heads implements storage.Log.
func (h *Handle) Heads(_ context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error {
	l := &h.m.log
	l.mu.Lock()
	heads := slices.Clone(l.chains[chain])
	l.mu.Unlock()
	for _, head := range heads {
		if head.Seq >= from {
			if err := f(head); err != nil {
				return err
			}
		}
	}
	return nil
}

// Chains implements storage.Log.
func (h *Handle) Chains(_ context.Context, f func(receipt.Chain) error) error {
	l := &h.m.log
	l.mu.Lock()
	tips := maps.Clone(l.tips)
	l.mu.Unlock()
	for _, tip := range tips {
		if err := f(tip); err != nil {
			return err
		}
	}
	return nil
}

// Grant implements storage.Quotas.
func (h *Handle) Grant(ctx context.Context, org string, month storage.Month, limit, want int64) (int64, error) {
	l := &h.m.log
	l.mu.Lock()
	defer l.mu.Unlock()
	m := memoryMeter{org, month}
	taken := l.meters[m]
	for _, n := range l.held[m] {
		taken += n
	}
	if l.held[m] == nil {
		l.held[m] = make(map[*Handle]int64)
	}
	granted := min(want, max(0, limit-taken))
	l.held[m][h] += granted
	return granted, ctx.Err()
}

// Return implements storage.Quotas.
func (h *Handle) Return(ctx context.Context, org string, month storage.Month, n int64) error {
	l := &h.m.log
	l.mu.Lock()
	defer l.mu.Unlock()
	m := memoryMeter{org, month}
	if n > l.held[m][h] {
		return fmt.Errorf("returning %d places of %d", n, l.held[m][h])
	}
	l.held[m][h] -= n
	return ctx.Err()
}

// Metered implements storage.Quotas.
func (h *Handle) Metered(ctx context.Context, org string, month storage.Month) (int64, error) {
	l := &h.m.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.meters[memoryMeter{org, month}], ctx.Err()
}

// Meters implements storage.Quotas.
func (h *Handle) Meters(ctx context.Context, month storage.Month, f func(org string, decided int64) error) error {
	l := &h.m.log
	l.mu.Lock()
	meters := maps.Clone(l.meters)
	l.mu.Unlock()
	byOrg := func(a, b memoryMeter) int { return strings.Compare(a.org, b.org) }
	for _, m := range slices.SortedFunc(maps.Keys(meters), byOrg) {
		if m.month != month {
			continue
		}
		if err := cmp.Or(ctx.Err(), f(m.org, meters[m])); err != nil {
			return err
		}
	}
	return nil
}

// OpenHandle implements Cluster.
func (m *Memory) OpenHandle(*testing.T) Replica { return m.Open() }

// TakeOver implements Cluster.
func (m *Memory) TakeOver(_ *testing.T, h Replica) Replica {
	dead := h.(*Handle)
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	for _, held := range m.log.held {
		delete(held, dead)
	}
	return m.open(m.log.tips[dead.tip.ID])
}

// Cut implements Cluster.
func (m *Memory) Cut(h Replica) { h.(*Handle).Cut() }

// Mend implements Cluster.
func (m *Memory) Mend(h Replica) { h.(*Handle).Mend() }
