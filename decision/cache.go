package decision

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine/condition"
)

// Cache keeps loaded values by key. The size of the values in bytes is bounded. A Cache is safe
// for concurrent use.
//
// However many callers ask for a key, only one load of it runs at a time. If a load began
// before [Cache.Invalidate] of its key, a [Cache.Get] that starts after Invalidate never sees
// the value of that load. Errors are not kept.
type Cache[K comparable, V any] struct {
	load loadFunc[K, V]
	size func(V) int64
	max  int64
	// own copies a key before it is kept, if own is not nil. The strings of a key may be parts
	// of a larger text, which the key would keep in memory.
	own func(K) K
	// fresh reports whether kept values may be used. If fresh is nil, they always may.
	fresh func() bool

	// mu guards entries, the ring and bytes. It is not held while a value is loaded, because
	// one slow key must not delay the others.
	mu      sync.RWMutex
	entries map[K]*entry[K, V]
	// hand is a place in the ring of loaded entries. The search for an entry to evict continues
	// there.
	hand  *entry[K, V]
	bytes int64

	hits, misses, loads, failures, evictions, loadNanos atomic.Int64
}

// loadFunc loads the value of a key.
type loadFunc[K comparable, V any] func(context.Context, K) (V, error)

// entry is the value of one key. It is put into the map before the value is loaded.
type entry[K comparable, V any] struct {
	key K
	// ready is closed once value and err are final. loaded says the same and is cheaper to
	// read.
	ready  chan struct{}
	loaded atomic.Bool
	value  V
	err    error
	// used is set when the entry is used. Such an entry gets a second chance before it is
	// evicted.
	used       atomic.Bool
	bytes      int64
	next, prev *entry[K, V]
}

// CacheStats counts the events of a cache since it was made.
type CacheStats struct {
	// Hits and Misses count the calls of Get. A call that waited for another caller's load is a
	// miss.
	Hits, Misses int64
	// Loads counts all loads. LoadErrors counts the failed ones.
	Loads, LoadErrors int64
	Evictions         int64
	// LoadTime is the sum of the times that all loads took.
	LoadTime time.Duration
	// Bytes and Entries are the size and the number of the values that are kept now.
	Bytes, Entries int64
}

// NewCache returns an empty cache. size measures a value, and all values together take at most
// maxBytes. load is called while no lock is held. A panic of load is returned as an error.
func NewCache[K comparable, V any](
	maxBytes int64, size func(V) int64, load func(context.Context, K) (V, error),
) *Cache[K, V] {
	return &Cache[K, V]{load: load, size: size, max: maxBytes, entries: make(map[K]*entry[K, V])}
}

// Get returns the value of key and loads it if necessary. A caller whose ctx ends stops
// waiting. That never ends a load that another caller waits for.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (V, error) { return c.get(ctx, key, c.load) }

// get is Get with the caller's load function. All callers of one key must load the same value.
func (c *Cache[K, V]) get(ctx context.Context, key K, load loadFunc[K, V]) (V, error) {
	if v, ok := c.Kept(key); ok {
		return v, nil
	}
	c.misses.Add(1)
	if c.stale() {
		return c.timedLoad(ctx, key, load)
	}
	return c.await(ctx, key, load)
}

// turnKey is the context key of the [condition.Turn] of the work that needs a load.
type turnKey struct{}

// GetFor is [Cache.Get] for work with a turn. turn may be nil. It is paused while the work
// waits for a load, and resumed while the work compiles.
func (c *Cache[K, V]) GetFor(ctx context.Context, turn condition.Turn, key K) (V, error) {
	if v, ok := c.Kept(key); ok {
		return v, nil
	}
	defer condition.Paused(turn)()
	return c.Get(context.WithValue(ctx, turnKey{}, turn), key)
}

// running resumes the turn of the work that needs a load, if the work has a turn. done pauses
// the turn again.
func running(ctx context.Context) (done func()) {
	if turn, ok := ctx.Value(turnKey{}).(condition.Turn); ok && turn.Resume() {
		return func() { turn.Pause() }
	}
	return func() {}
}

// Kept returns the value of key if it is kept. It never loads or waits. It counts as a call of
// Get only if it finds the value.
func (c *Cache[K, V]) Kept(key K) (v V, ok bool) {
	e := c.peek(key)
	if e == nil {
		return v, false
	}
	c.hits.Add(1)
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e.value, true
}

// peek returns the entry of key if it is loaded, and otherwise nil. The call does not count as
// a use of the entry.
func (c *Cache[K, V]) peek(key K) *entry[K, V] {
	if c.stale() {
		return nil
	}
	c.mu.RLock()
	e := c.entries[key]
	c.mu.RUnlock()
	if e == nil || !e.loaded.Load() {
		return nil
	}
	return e
}

// OnlyWhile lets the cache be used only while fresh returns true. While it returns false, each
// Get loads the value and does not keep it. OnlyWhile must be called before the cache is used.
func (c *Cache[K, V]) OnlyWhile(fresh func() bool) { c.fresh = fresh }

func (c *Cache[K, V]) stale() bool { return c.fresh != nil && !c.fresh() }

// await waits for the load of key. If no load is under way, await runs one.
func (c *Cache[K, V]) await(ctx context.Context, key K, load loadFunc[K, V]) (V, error) {
	for {
		e, mine := c.claim(key)
		if mine {
			return c.run(ctx, e, load)
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			var none V
			return none, context.Cause(ctx)
		}
		// The caller that ran the load may have given up. This caller has not.
		gaveUp := errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded)
		if gaveUp && ctx.Err() == nil {
			continue
		}
		return e.value, e.err
	}
}

// claim returns the entry of key. It reports whether the caller has to load the entry.
func (c *Cache[K, V]) claim(key K) (e *entry[K, V], mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[key]; e != nil {
		return e, false
	}
	if c.own != nil {
		key = c.own(key)
	}
	e = &entry[K, V]{key: key, ready: make(chan struct{})}
	c.entries[key] = e
	return e, true
}

// run loads e and gives the result to the callers that wait for this entry. If the entry was
// not invalidated in the meantime, run keeps the value for everyone.
func (c *Cache[K, V]) run(ctx context.Context, e *entry[K, V], load loadFunc[K, V]) (V, error) {
	e.value, e.err = c.timedLoad(ctx, e.key, load)

	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(e.ready)
	current := c.entries[e.key] == e
	switch {
	case e.err != nil:
		if current {
			delete(c.entries, e.key)
		}
	case current:
		e.loaded.Store(true)
		c.keepLocked(e)
	}
	return e.value, e.err
}

// timedLoad loads a value. It counts and times the load.
func (c *Cache[K, V]) timedLoad(ctx context.Context, key K, load loadFunc[K, V]) (V, error) {
	start := time.Now()
	v, err := guardedLoad(ctx, key, load)
	c.loadNanos.Add(int64(time.Since(start)))
	c.loads.Add(1)
	if err != nil {
		c.failures.Add(1)
	}
	return v, err
}

func guardedLoad[K comparable, V any](ctx context.Context, key K, load loadFunc[K, V]) (v V, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("loading panicked: %v", r)
		}
	}()
	v, err = load(ctx, key)
	return v, err
}

// keepLocked adds e to the kept entries. Then it evicts entries until all fit into the bound.
func (c *Cache[K, V]) keepLocked(e *entry[K, V]) {
	e.bytes = c.size(e.value)
	c.bytes += e.bytes
	if c.hand == nil {
		e.next, e.prev, c.hand = e, e, e
	} else {
		e.next, e.prev = c.hand, c.hand.prev
		e.prev.next, c.hand.prev = e, e
	}
	for c.bytes > c.max && c.hand != nil {
		victim := c.hand
		if victim.used.Swap(false) {
			c.hand = victim.next
			continue
		}
		c.dropLocked(victim)
		c.evictions.Add(1)
	}
}

// dropLocked removes a loaded entry from the map and the ring.
func (c *Cache[K, V]) dropLocked(e *entry[K, V]) {
	delete(c.entries, e.key)
	c.bytes -= e.bytes
	if e.next == e {
		c.hand = nil
		return
	}
	e.prev.next, e.next.prev = e.next, e.prev
	if c.hand == e {
		c.hand = e.next
	}
}

// Invalidate forgets the value of key. It also forgets a load of key that is under way. Each
// Get that starts after Invalidate returns gets a value that was loaded later. Invalidate
// returns the value that was kept, if there was one.
func (c *Cache[K, V]) Invalidate(key K) (stale V, kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	switch {
	case e == nil:
	case e.loaded.Load():
		c.dropLocked(e)
		return e.value, true
	default:
		delete(c.entries, key)
	}
	return stale, false
}

// invalidateWhere invalidates every key for which match returns true.
func (c *Cache[K, V]) invalidateWhere(match func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		switch {
		case !match(key):
		case e.loaded.Load():
			c.dropLocked(e)
		default:
			delete(c.entries, key)
		}
	}
}

// InvalidateAll invalidates every key.
func (c *Cache[K, V]) InvalidateAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	c.hand, c.bytes = nil, 0
}

// Stats returns the counters of the cache.
func (c *Cache[K, V]) Stats() CacheStats {
	c.mu.RLock()
	bytes, entries := c.bytes, int64(len(c.entries))
	c.mu.RUnlock()
	return CacheStats{
		Hits: c.hits.Load(), Misses: c.misses.Load(),
		Loads: c.loads.Load(), LoadErrors: c.failures.Load(),
		Evictions: c.evictions.Load(), LoadTime: time.Duration(c.loadNanos.Load()),
		Bytes: bytes, Entries: entries,
	}
}

// Metrics returns the metrics of the cache. Their label cache has the value name.
func (c *Cache[K, V]) Metrics(name string) []prometheus.Collector {
	counter := func(metric, help string, value func(CacheStats) float64, result ...string) prometheus.Collector {
		labels := prometheus.Labels{"cache": name}
		if len(result) > 0 {
			labels["result"] = result[0]
		}
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: metric, Help: help, ConstLabels: labels},
			func() float64 { return value(c.Stats()) })
	}
	gauge := func(metric, help string, value func(CacheStats) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: metric, Help: help, ConstLabels: prometheus.Labels{"cache": name}},
			func() float64 { return value(c.Stats()) })
	}
	const gets, getsHelp = "writ_cache_gets_total", "Look-ups of a cache, by whether the value was there."
	return []prometheus.Collector{
		counter(gets, getsHelp, func(s CacheStats) float64 { return float64(s.Hits) }, "hit"),
		counter(gets, getsHelp, func(s CacheStats) float64 { return float64(s.Misses) }, "miss"),
		counter("writ_cache_loads_total", "Values loaded or compiled.",
			func(s CacheStats) float64 { return float64(s.Loads) }),
		counter("writ_cache_load_errors_total", "Loads that failed.",
			func(s CacheStats) float64 { return float64(s.LoadErrors) }),
		counter("writ_cache_load_seconds_total", "Time all loads took together.",
			func(s CacheStats) float64 { return s.LoadTime.Seconds() }),
		counter("writ_cache_evictions_total", "Values dropped for want of room.",
			func(s CacheStats) float64 { return float64(s.Evictions) }),
		gauge("writ_cache_bytes", "About what the values take.",
			func(s CacheStats) float64 { return float64(s.Bytes) }),
		gauge("writ_cache_entries", "Values kept.", func(s CacheStats) float64 { return float64(s.Entries) }),
	}
}
