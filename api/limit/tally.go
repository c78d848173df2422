package limit

import "sync"

// Tally bounds how much of something is under way, in all and for each key. A key may have at most as much as it leaves
// to the other keys. So a key that comes later finds room, even if all others take as much as they can.
type Tally[K comparable] struct {
	most, each int

	mu     sync.Mutex
	all    int
	byKey  map[K]int // no value is 0
	closed bool
	ended  sync.WaitGroup // nothing is added after closed is set
}

// NewTally returns a tally that allows most in all, and each for one key.
func NewTally[K comparable](most, each int) *Tally[K] {
	return &Tally[K]{most: most, each: each, byKey: make(map[K]int)}
}

// Begin adds one to the count of key. end takes it away again; further calls of end do nothing. Begin returns false if
// there is no room.
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

// Close makes every later Begin return false, and waits until everything under way has ended.
func (t *Tally[K]) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.ended.Wait()
}
