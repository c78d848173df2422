package api

import "sync"

// tally bounds how much of something is under way, in all and of one key. A key may have as
// much as it leaves to others, so that those who come later find room, however many take all
// they can.
type tally[K comparable] struct {
	most, each int

	mu    sync.Mutex
	all   int
	byKey map[K]int // never 0
}

func newTally[K comparable](most, each int) *tally[K] {
	return &tally[K]{most: most, each: each, byKey: make(map[K]int)}
}

// begin counts one more of key until end is called, which may be called again. It returns
// false if there is no room.
func (t *tally[K]) begin(key K) (end func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey[key] >= min(t.each, t.most-t.all) {
		return nil, false
	}
	t.all++
	t.byKey[key]++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all--
		if t.byKey[key]--; t.byKey[key] == 0 {
			delete(t.byKey, key)
		}
	}), true
}
