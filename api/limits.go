package api

import "sync"

// The limits that no deployment sets; [Limits] and [RateLimits] are those that it does.
// docs/configuration.md lists what a caller can meet.
const (
	// maxBatch is how many intents a batch may have.
	maxBatch = 100
	// maxExports bounds the exports under way, which each take a megabyte and may
	// last as long as their reader likes. One organization has a sixteenth of them.
	maxExports = 64
	// maxReads is how many times a page of the history asks the store, which each
	// time may skip some hundreds of rows, to find what its filter selects.
	maxReads = 200
	// maxWait is for how many seconds a look-up of an approval waits for a verdict: below
	// what proxies take for a connection that is idle.
	maxWait = 60
	// maxPolls bounds the look-ups that wait for a verdict, which take some megabytes of
	// goroutines. One organization has a quarter of them.
	maxPolls = 2048
)

// tally bounds how much of something is under way, in all and of one key. A key may have as
// much as it leaves to others, so that those who come later find room, however many take all
// they can.
type tally[K comparable] struct {
	most, each int

	mu     sync.Mutex
	all    int
	byKey  map[K]int // never 0
	closed bool
	ended  sync.WaitGroup // not added to once closed is set
}

func newTally[K comparable](most, each int) *tally[K] {
	return &tally[K]{most: most, each: each, byKey: make(map[K]int)}
}

// begin counts one more of key until end is called, which may be called again. It returns
// false if there is no room.
func (t *tally[K]) begin(key K) (end func(), ok bool) {
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

// close lets none begin any more and waits for those under way.
func (t *tally[K]) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.ended.Wait()
}
