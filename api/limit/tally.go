package limit

import "sync"

// Tally bounds how many operations run at once, in total and for each key. A key never gets more
// than it leaves free for other keys. A new key therefore finds room even if the other keys take as
// much as they can.
type Tally[K comparable] struct {
	most, each int

	mu     sync.Mutex
	all    int
	byKey  map[K]int // a count of 0 is deleted
	closed bool
	ended  sync.WaitGroup // nothing is added once closed is true
}

// NewTally returns a tally with the bound most in total and the bound each per key.
func NewTally[K comparable](most, each int) *Tally[K] {
	return &Tally[K]{most: most, each: each, byKey: make(map[K]int)}
}

// Begin adds one to the count of key. It returns false if there is no room. end subtracts the one
// again; further calls of end do nothing.
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

// Close makes every later Begin return false. It waits until every operation has ended.
func (t *Tally[K]) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.ended.Wait()
}
