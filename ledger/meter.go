package ledger

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"writ/storage"
)

const (
	// meterBytes bounds what all meters take, but for those with turns in
	// flight: some 30,000 organizations.
	meterBytes = 8 << 20
	// meterOverhead is what a meter takes beside its organization's name: the
	// struct, its element of the list and its place in the map.
	meterOverhead = 256
)

type meterKey struct {
	org   string
	month storage.Month
}

func (k meterKey) bytes() int { return meterOverhead + len(k.org) }

// meter counts the decisions of one organization in one month.
type meter struct {
	key     meterKey
	element *list.Element // in meters.recent
	// loaded is closed when the meter has been read from the store, or the
	// reading has failed with err.
	loaded  chan struct{}
	loading bool
	err     error // set before loaded is closed

	taken    int64 // committed and in flight
	inFlight int64 // a meter with any isn't evicted
}

// meters are the meters in use. They are read from the store when first used
// and forgotten when unused for longest.
type meters struct {
	store interface {
		Metered(ctx context.Context, org string, month storage.Month) (int64, error)
	}
	limit int // bytes

	mu     sync.Mutex
	byKey  map[meterKey]*meter
	recent *list.List // of *meter, last used first
	bytes  int
	closed bool
	loads  sync.WaitGroup // of load; not added to once closed is set

	reads, readErrors atomic.Int64
}

func newMeters(store storage.Log, limit int) *meters {
	return &meters{store: store, limit: limit, byKey: make(map[meterKey]*meter), recent: list.New()}
}

// begin takes a place in the meter of key and returns the ordinal.
func (ms *meters) begin(ctx context.Context, key meterKey) (*meter, int64, error) {
	for {
		ms.mu.Lock()
		m := ms.byKey[key]
		switch {
		case ms.closed:
			ms.mu.Unlock()
			return nil, 0, ErrClosed
		case m == nil:
			m = ms.insertLocked(key)
			ms.mu.Unlock()
			if err := ms.load(ctx, m); err != nil {
				return nil, 0, err
			}
		case m.loading:
			ms.mu.Unlock()
			if err := m.awaitLoad(ctx); err != nil {
				return nil, 0, err
			}
		default:
			m.taken++
			m.inFlight++
			ordinal := m.taken
			ms.recent.MoveToFront(m.element)
			ms.mu.Unlock()
			return m, ordinal, nil
		}
	}
}

// awaitLoad returns how another's loading of m ended, but nil if that failed
// for its own context: then the meter is to be asked for again.
func (m *meter) awaitLoad(ctx context.Context) error {
	select {
	case <-m.loaded:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the meter: %w", ctx.Err())
	}
	if errors.Is(m.err, context.Canceled) || errors.Is(m.err, context.DeadlineExceeded) {
		return nil
	}
	return m.err
}

func (ms *meters) insertLocked(key meterKey) *meter {
	key.org = strings.Clone(key.org) // it may be a piece of something large
	m := &meter{key: key, loading: true, loaded: make(chan struct{})}
	m.element = ms.recent.PushFront(m)
	ms.byKey[key] = m
	ms.bytes += key.bytes()
	ms.loads.Add(1)
	ms.evictLocked()
	return m
}

// evictLocked forgets the meters unused for longest until the rest is within
// the limit. One in use goes to the front: it's not among those.
func (ms *meters) evictLocked() {
	for range ms.recent.Len() {
		if ms.bytes <= ms.limit {
			return
		}
		m := ms.recent.Back().Value.(*meter)
		if m.loading || m.inFlight > 0 {
			ms.recent.MoveToFront(m.element)
			continue
		}
		ms.removeLocked(m)
	}
}

func (ms *meters) removeLocked(m *meter) {
	delete(ms.byKey, m.key)
	ms.recent.Remove(m.element)
	ms.bytes -= m.key.bytes()
}

// load reads m from the store. No commit of m's can be under way meanwhile:
// whoever has one keeps m from being evicted, and nobody begins before it is
// loaded.
func (ms *meters) load(ctx context.Context, m *meter) error {
	defer ms.loads.Done()
	n, err := ms.read(ctx, m.key)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	defer close(m.loaded)
	m.loading = false
	m.taken = n
	if err != nil {
		m.err = err
		ms.removeLocked(m)
	}
	return m.err
}

// read asks the store.
func (ms *meters) read(ctx context.Context, key meterKey) (int64, error) {
	ms.reads.Add(1)
	n, err := ms.store.Metered(ctx, key.org, key.month)
	if err != nil {
		ms.readErrors.Add(1)
		return 0, fmt.Errorf("reading the meter: %w", err)
	}
	return n, nil
}

// release gives one place in flight back.
func (ms *meters) release(m *meter) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.inFlight--
	m.taken--
}

// settle ends the places of a batch: those of the records that were stored stay
// taken. existing is what stands for each record, nil where nothing was stored.
func (ms *meters) settle(batch []*waiter, existing []*storage.Record) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, w := range batch {
		kept := existing != nil && !w.raced(existing)
		for i := range w.places {
			m := w.places[i].meter
			m.inFlight--
			if !kept || existing[i] != nil {
				m.taken--
			}
		}
		if existing != nil {
			existing = existing[len(w.places):]
		}
	}
}

// close makes begin refuse.
func (ms *meters) close() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.closed = true
}
