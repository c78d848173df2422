package decision

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ/engine/condition"
)

// Cache keeps loaded values by key, bounded by their size in bytes. It is safe
// for concurrent use.
//
// However many callers ask for a key, it is loaded once at a time. A load that
// began before [Cache.Invalidate] of its key is never seen by a [Cache.Get] that
// starts after it. Errors are not kept.
type Cache[K comparable, V any] struct {
	load loadFunc[K, V]
	size func(V) int64
	max  int64
	// own, if it is not nil, copies a key before it is kept. Its strings may be parts of
	// a larger text, which the key would keep in memory.
	own func(K) K
	// fresh, if it is not nil, reports whether kept values may be used.
	fresh func() bool

	// mu guards entries, the ring and bytes. It is not held while loading: one
	// slow key must not delay the others.
	mu      sync.RWMutex
	entries map[K]*entry[K, V]
	// hand is where the search for a victim continues: a ring of loaded entries.
	hand  *entry[K, V]
	bytes int64

	hits, misses, loads, failures, evictions, loadNanos atomic.Int64
}

// loadFunc loads the value of a key.
type loadFunc[K comparable, V any] func(context.Context, K) (V, error)

// entry is one key's value, put into the map before it is loaded.
type entry[K comparable, V any] struct {
	key K
	// ready is closed once value and err are final; loaded is the cheap way to
	// see it.
	ready  chan struct{}
	loaded atomic.Bool
	value  V
	err    error
	// used gives an entry a second chance when something has to go.
	used       atomic.Bool
	bytes      int64
	next, prev *entry[K, V]
}

// CacheStats counts what a cache did since it was made.
type CacheStats struct {
	// Hits and Misses count Gets; one that waited for another's load is a miss.
	Hits, Misses int64
	// Loads counts all loads, LoadErrors the failed ones.
	Loads, LoadErrors int64
	Evictions         int64
	// LoadTime is the time that all loads took together.
	LoadTime time.Duration
	// Bytes and Entries are what is resident now.
	Bytes, Entries int64
}

// NewCache returns an empty cache whose values, as size measures them, take at
// most maxBytes. Load is called without locks held; its panics are errors.
func NewCache[K comparable, V any](
	maxBytes int64, size func(V) int64, load func(context.Context, K) (V, error),
) *Cache[K, V] {
	return &Cache[K, V]{load: load, size: size, max: maxBytes, entries: make(map[K]*entry[K, V])}
}

// Get returns the value of key, loading it if necessary. A caller whose ctx
// ends stops waiting; it never ends the load that another caller waits for.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (V, error) { return c.get(ctx, key, c.load) }

// get is Get with the caller's load function. Callers of one key must load the same value.
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

// turnKey is the key of the [condition.Turn] of the work that a load is for.
type turnKey struct{}

// GetFor is [Cache.Get] for work with a turn, which may be nil. The turn is paused while
// the work waits for a load, and resumed while it compiles.
func (c *Cache[K, V]) GetFor(ctx context.Context, turn condition.Turn, key K) (V, error) {
	if v, ok := c.Kept(key); ok {
		return v, nil
	}
	defer condition.Paused(turn)()
	return c.Get(context.WithValue(ctx, turnKey{}, turn), key)
}

// running resumes the turn of the work that a load is for, if it has one, until done.
func running(ctx context.Context) (done func()) {
	if turn, ok := ctx.Value(turnKey{}).(condition.Turn); ok && turn.Resume() {
		return func() { turn.Pause() }
	}
	return func() {}
}

// Kept returns the value of key if it is kept. It never loads or waits, and
// counts as a Get only when it succeeds.
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

// peek returns the entry of key if it is loaded, or nil. It counts as no use.
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

// OnlyWhile has the cache used only while fresh returns true. Otherwise every Get loads
// and keeps nothing. It must be called before the cache is used.
func (c *Cache[K, V]) OnlyWhile(fresh func() bool) { c.fresh = fresh }

func (c *Cache[K, V]) stale() bool { return c.fresh != nil && !c.fresh() }

// await joins the load of key or runs it.
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
		// The caller that loaded may have given up. This one has not.
		gaveUp := errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded)
		if gaveUp && ctx.Err() == nil {
			continue
		}
		return e.value, e.err
	}
}

// claim returns key's entry, and whether the caller has to load it.
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

// run loads e and publishes the outcome, to those who wait for this entry and,
// unless it was invalidated meanwhile, to everyone.
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

// timedLoad loads and counts it.
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

// keepLocked makes e resident and evicts until the bound holds again.
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

// Invalidate forgets key, also a load of it that is under way: every Get that
// starts after Invalidate returns sees a value loaded later. It returns the
// value that was kept, if one was.
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

// invalidateWhere is Invalidate of every key that match returns true of.
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

// InvalidateAll is Invalidate of every key.
func (c *Cache[K, V]) InvalidateAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	c.hand, c.bytes = nil, 0
}

// Stats returns the counters.
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

// Metrics returns the metrics of the cache, which is called name there.
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
