package admission

import (
	"slices"
	"time"
)

// flowKey names a queue.
type flowKey struct {
	org  string
	kind Kind
}

// flow is an organization's queue for one kind of work.
type flow struct {
	key     flowKey
	waiting []*waiter
	working int // slots that it holds
	// charged is the time that it held slots, or where the others stood when it
	// came back. mean is what its last requests took.
	charged, mean time.Duration
}

// waiter is a request in a queue. Whoever takes it out sends its slot.
type waiter struct {
	verdict chan Slot // holds one
	timer   *time.Timer
	dear    bool
	order   uint64
}

// isDear reports whether what comes next is dear.
func (f *flow) isDear() bool { return f.waiting[0].dear || f.mean > dear }

// before reports whether f comes before g: it has been charged less, or as much
// and its request came first.
func (f *flow) before(g *flow) bool {
	if f.charged != g.charged {
		return f.charged < g.charged
	}
	return f.waiting[0].order < g.waiting[0].order
}

// end charges what a request took for what was expected.
func (f *flow) end(took, expected time.Duration) {
	f.working--
	f.charged += took - expected
	f.mean += (took - f.mean) / meanOver
}

// flowLocked returns the queue of a key, ready to be charged.
func (g *Gate) flowLocked(key flowKey) *flow {
	f := g.flows[key]
	if f == nil {
		if len(g.flows) >= maxFlows {
			g.forgetLocked()
		}
		f = &flow{key: key}
		g.flows[key] = f
	}
	return f
}

// forgetLocked drops the queues in which nothing goes on.
func (g *Gate) forgetLocked() {
	for key, f := range g.flows {
		if f.working == 0 && len(f.waiting) == 0 {
			delete(g.flows, key)
		}
	}
}

// queueLocked puts a request at the end of f.
func (g *Gate) queueLocked(f *flow, isDear bool) *waiter {
	w := g.waiters.Get().(*waiter)
	g.order++
	w.dear, w.order = isDear, g.order
	if len(f.waiting) == 0 {
		f.charged = max(f.charged, g.now)
		g.queued = append(g.queued, f)
	}
	f.waiting = append(f.waiting, w)
	g.waiting++
	return w
}

// removeLocked takes the i-th request out of f.
func (g *Gate) removeLocked(f *flow, i int) {
	f.waiting = slices.Delete(f.waiting, i, i+1)
	g.waiting--
	if len(f.waiting) == 0 {
		at := slices.Index(g.queued, f)
		g.queued = slices.Delete(g.queued, at, at+1)
	}
}
