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
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// memoryQuotas has the meters of a Memory and the places that each handle was granted but has not
// used.
type memoryQuotas struct {
	mu     sync.Mutex
	meters map[memoryMeter]int64
	held   map[memoryMeter]map[*Handle]int64
	scarce map[memoryMeter]time.Time // since when places are scarce
}

// comeBack is the time within which handles give their idle places back once they are scarce.
const comeBack = 2 * time.Second

type memoryMeter struct {
	org   string
	month storage.Month
}

// Append implements storage.Log.
func (h *Handle) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (existing storage.Batch, err error) {
	l := &h.m.quotas
	l.mu.Lock()
	defer l.mu.Unlock()
	var sealed storage.Batch
	existing, err = h.LogHandle.Append(ctx, batch, func(tip receipt.Chain, fresh storage.Batch) (_ storage.Batch, head receipt.SignedHead, err error) {
		sealed, head, err = seal(tip, fresh)
		return sealed, head, err
	})
	if err != nil {
		return existing, err
	}
	for _, r := range sealed.Records {
		if !r.Metered() {
			continue
		}
		m := memoryMeter{r.OrganizationID, storage.MonthOf(r.DecidedAt)}
		l.meters[m]++
		if l.held[m][h] > 0 {
			l.held[m][h]--
		}
	}
	return existing, nil
}

// Count implements storage.Quotas.
func (h *Handle) Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	if w.Month == 0 {
		return h.countWindow(ctx, w, ask)
	}
	l := &h.m.quotas
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.lost.Load() {
		return storage.Granted{}, storage.ErrConflict
	}
	m := memoryMeter{w.Org, w.Month}
	if l.held[m] == nil {
		l.held[m] = make(map[*Handle]int64)
	}
	for _, back := range ask.Back {
		if back.N > l.held[m][h] {
			return storage.Granted{}, fmt.Errorf("returning %d places of %d", back.N, l.held[m][h])
		}
		l.held[m][h] -= back.N
	}
	got := storage.Granted{At: ask.At, Total: l.meters[m]}
	for _, n := range l.held[m] {
		got.Total += n
	}
	if n := min(ask.Want, ask.Limit-got.Total); n >= ask.Need && n > 0 {
		got.N, got.Total = n, got.Total+n
		l.held[m][h] += n
	}
	if ask.Want > 0 && ask.Limit < storage.NoLimit {
		l.lookLocked(m, h, &ask, &got)
	}
	return got, ctx.Err()
}

// lookLocked sets Ample and Wait.
func (l *memoryQuotas) lookLocked(m memoryMeter, h *Handle, ask *storage.Ask, got *storage.Granted) {
	held := int64(0)
	for _, n := range l.held[m] {
		held += n
	}
	since, scarce := l.scarce[m]
	if got.Ample = 8*held < ask.Limit-got.Total; got.Ample {
		delete(l.scarce, m)
		return
	}
	if !scarce {
		since = time.Now()
		l.scarce[m] = since
	}
	if idle := time.Since(since); held > l.held[m][h] && idle < comeBack {
		got.Wait = min(comeBack-idle, comeBack/8)
	}
}

// Scarce implements storage.Quotas.
func (h *Handle) Scarce(ctx context.Context, meters []storage.Window) ([]bool, error) {
	l := &h.m.quotas
	l.mu.Lock()
	defer l.mu.Unlock()
	scarce := make([]bool, len(meters))
	for i, w := range meters {
		_, scarce[i] = l.scarce[memoryMeter{w.Org, w.Month}]
	}
	return scarce, ctx.Err()
}

// Metered implements storage.Quotas.
func (h *Handle) Metered(ctx context.Context, org string, month storage.Month) (int64, error) {
	l := &h.m.quotas
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.meters[memoryMeter{org, month}], ctx.Err()
}

// Meters implements storage.Quotas.
func (h *Handle) Meters(ctx context.Context, month storage.Month, f func(org string, decided int64) error) error {
	l := &h.m.quotas
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
	dead.lost.Store(true)
	m.quotas.mu.Lock()
	defer m.quotas.mu.Unlock()
	for _, held := range m.quotas.held {
		delete(held, dead)
	}
	return m.open(m.log.takeOver(dead.LogHandle))
}

// Cut implements Cluster.
func (m *Memory) Cut(h Replica) { h.(*Handle).Cut() }

// Mend implements Cluster.
func (m *Memory) Mend(h Replica) { h.(*Handle).Mend() }
