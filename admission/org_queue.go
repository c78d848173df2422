package admission

import (
	"slices"
	"time"
)

// organization has the queues of one organization.
type organization struct {
	queues  [Managing + 1]orgQueue
	working int // slots held
	away    int // work whose slot was taken away while it waited for something else
}

// orgQueue is an organization's queue for one kind of work.
type orgQueue struct {
	org     *organization
	kind    Kind
	waiting []*waiter
	// charged is the slot time that the queue was charged for, at least what the others
	// had been charged when it last became busy. mean is that of its last requests.
	charged, mean time.Duration
}

// waiter is a request in a queue. Whoever removes it sends its slot.
type waiter struct {
	verdict chan Slot // holds one
	timer   *time.Timer
	costly  bool
	stage   stage
	order   uint64
	since   time.Time
}

// stage is how far work is that waits for a slot. In a queue later stages come first.
type stage uint8

// The stages.
const (
	fresh stage = iota
	back        // its slot was taken away while it waited for something else
	begun       // it has yielded
)

// before reports whether q is served before other: it was charged less, or the same and
// its request arrived first.
func (q *orgQueue) before(other *orgQueue) bool {
	if q.charged != other.charged {
		return q.charged < other.charged
	}
	return q.waiting[0].order < other.waiting[0].order
}

// age is how long the first has waited of those that have had no slot.
func (q *orgQueue) age() time.Duration {
	for _, w := range q.waiting {
		if w.stage == fresh {
			return time.Since(w.since)
		}
	}
	return 0
}

// ended adds a request that took so long to the mean.
func (q *orgQueue) ended(took time.Duration) { q.mean += (took - q.mean) / meanOver }

// orgQueueLocked returns the queue of an organization for a kind of work.
func (g *Gate) orgQueueLocked(org string, kind Kind) *orgQueue {
	t := g.organizations[org]
	if t == nil {
		if len(g.organizations) >= 2*maxWaiting {
			g.forgetLocked()
		}
		t = &organization{}
		for k := range t.queues {
			t.queues[k].org, t.queues[k].kind = t, Kind(k)
		}
		g.organizations[org] = t
	}
	return &t.queues[kind]
}

// forgetLocked drops the organizations that are idle.
func (g *Gate) forgetLocked() {
	for org, t := range g.organizations {
		if t.working == 0 && t.away == 0 && len(t.queues[Deciding].waiting) == 0 && len(t.queues[Managing].waiting) == 0 {
			delete(g.organizations, org)
		}
	}
}

// queueLocked adds a request to q, after those of its stage.
func (g *Gate) queueLocked(q *orgQueue, costly bool, s stage) *waiter {
	w := g.waiters.Get().(*waiter)
	g.order++
	w.costly, w.stage, w.order, w.since = costly, s, g.order, time.Now()
	if len(q.waiting) == 0 {
		q.charged = max(q.charged, g.now)
		g.queued = append(g.queued, q)
	}
	at := len(q.waiting)
	if s != fresh {
		if i := slices.IndexFunc(q.waiting, func(w *waiter) bool { return w.stage < s }); i >= 0 {
			at = i
		}
	}
	if s == begun && costly {
		g.paused++
	}
	q.waiting = slices.Insert(q.waiting, at, w)
	g.waiting++
	g.watchLocked()
	return w
}

// removeLocked removes the i-th request of q.
func (g *Gate) removeLocked(q *orgQueue, i int) {
	if w := q.waiting[i]; w.stage == begun && w.costly {
		g.paused--
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	g.waiting--
	if len(q.waiting) == 0 {
		at := slices.Index(g.queued, q)
		g.queued = slices.Delete(g.queued, at, at+1)
	}
}
