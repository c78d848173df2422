package admission

import (
	"slices"
	"time"
)

// tenant is an organization.
type tenant struct {
	flows   [Managing + 1]flow
	working int // slots that it holds
}

// flow is an organization's queue for one kind of work.
type flow struct {
	tenant  *tenant
	kind    Kind
	waiting []*waiter
	// charged is the time that it held slots, or where the others stood when it
	// came back. mean is what its last requests took.
	charged, mean time.Duration
}

// waiter is a request in a queue. Whoever takes it out sends its slot.
type waiter struct {
	verdict chan Slot // holds one
	timer   *time.Timer
	dear    bool
	begun   bool // it had a slot and yielded
	order   uint64
}

// before reports whether f comes before g: it has been charged less, or as much
// and its request came first.
func (f *flow) before(g *flow) bool {
	if f.charged != g.charged {
		return f.charged < g.charged
	}
	return f.waiting[0].order < g.waiting[0].order
}

// ended counts a request that took so long.
func (f *flow) ended(took time.Duration) { f.mean += (took - f.mean) / meanOver }

// flowLocked returns the queue of an organization for a kind of work.
func (g *Gate) flowLocked(org string, kind Kind) *flow {
	t := g.tenants[org]
	if t == nil {
		if len(g.tenants) >= maxTenants {
			g.forgetLocked()
		}
		t = &tenant{}
		for k := range t.flows {
			t.flows[k].tenant, t.flows[k].kind = t, Kind(k)
		}
		g.tenants[org] = t
	}
	return &t.flows[kind]
}

// forgetLocked drops the organizations for which nothing goes on.
func (g *Gate) forgetLocked() {
	for org, t := range g.tenants {
		if t.working == 0 && len(t.flows[Deciding].waiting) == 0 && len(t.flows[Managing].waiting) == 0 {
			delete(g.tenants, org)
		}
	}
}

// queueLocked puts a request at the end of f, or behind what was begun before.
func (g *Gate) queueLocked(f *flow, dear, begun bool) *waiter {
	w := g.waiters.Get().(*waiter)
	g.order++
	w.dear, w.begun, w.order = dear, begun, g.order
	if len(f.waiting) == 0 {
		f.charged = max(f.charged, g.now)
		g.queued = append(g.queued, f)
	}
	at := len(f.waiting)
	if begun {
		if i := slices.IndexFunc(f.waiting, func(w *waiter) bool { return !w.begun }); i >= 0 {
			at = i
		}
		if dear {
			g.paused++
		}
	}
	f.waiting = slices.Insert(f.waiting, at, w)
	g.waiting++
	return w
}

// removeLocked takes the i-th request out of f.
func (g *Gate) removeLocked(f *flow, i int) {
	if w := f.waiting[i]; w.begun && w.dear {
		g.paused--
	}
	f.waiting = slices.Delete(f.waiting, i, i+1)
	g.waiting--
	if len(f.waiting) == 0 {
		at := slices.Index(g.queued, f)
		g.queued = slices.Delete(g.queued, at, at+1)
	}
}
