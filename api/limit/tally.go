package limit

import "sync"

// Tally bounds how much of something is under way, in all and of one key. A key may have as
// much as it leaves to others, so that those who come later find room, however many take all
// they can.
type Tally[K comparable] struct {
	most, each int

	mu     sync.Mutex
	all    int
	byKey  map[K]int // never 0
	closed bool
	ended  sync.WaitGroup // not added to once closed is set
}

// NewTally returns a tally of most in all and each of one key.
func NewTally[K comparable](most, each int) *Tally[K] {
	return &Tally[K]{most: most, each: each, byKey: make(map[K]int)}
}

// Begin counts one more of key until end is called, which may be called again. It returns
// false if there is no room.
func (t *Tally[K]) Begin(key K) (end func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.byKey[key] >= min(t.each, t.most-t.all) {
		return nil, false
	}
	t.all++
	t.byKey[key]++
	t.ended.Add(1)
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all--
		if t.byKey[key]--; t.byKey[key] == 0 {
			delete(t.byKey, key)
		}
		t.ended.Done()
	}), true
}

// Close lets none begin any more and waits for those under way.
func (t *Tally[K]) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.ended.Wait()
}
