package admission

import (
	"slices"
	"time"
)

// organization has the queues of one organization.
type organization struct {
	queues  [Managing + 1]orgQueue
	working int // the number of slots in use
}

// orgQueue is the queue of one organization for one kind of work.
type orgQueue struct {
	org     *organization
	kind    Kind
	waiting []*waiter
	paused  int // the number of requests that gave up their slot for a while
	// charged is the slot time charged to the queue. When a request comes to an idle queue, charged
	// becomes at least the charge of the last served queue.
	charged time.Duration
	// mean is the mean slot time of the queue's last requests.
	mean time.Duration
}

// work is a request that has a slot or waits for one.
type work struct {
	queue  *orgQueue
	order  uint64 // the number in the order of arrival
	costly bool
	begun  bool // the work has yielded, so it precedes work that has not begun
}

// waiter is a request in a queue. When it is served, it leaves the queue and its channel gets the
// slot.
type waiter struct {
	work
	verdict chan Slot // buffered for one slot
	timer   *time.Timer
	since   time.Time
}

// before reports whether q is served before another queue. The queue with the smaller charge goes
// first. With equal charges, the request that arrived first decides.
func (q *orgQueue) before(other *orgQueue) bool {
	if q.charged != other.charged {
		return q.charged < other.charged
	}
	return q.waiting[0].order < other.waiting[0].order
}

// age returns how long the queue's oldest request has waited.
func (q *orgQueue) age() (age time.Duration) {
	for _, w := range q.waiting {
		age = max(age, time.Since(w.since))
	}
	return age
}

// orgQueueLocked returns an organization's queue for a kind of work.
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

// forgetLocked drops idle organizations.
func (g *Gate) forgetLocked() {
	for org, t := range g.organizations {
		idle := func(q orgQueue) bool { return len(q.waiting) == 0 && q.paused == 0 }
		if t.working == 0 && idle(t.queues[Deciding]) && idle(t.queues[Managing]) {
			delete(g.organizations, org)
		}
	}
}

// queueLocked adds work to its queue. Work that has begun precedes other work. Otherwise the order
// of arrival decides.
func (g *Gate) queueLocked(work work) *waiter {
	w, q := g.waiters.Get().(*waiter), work.queue
	w.work, w.since = work, time.Now()
	if len(q.waiting) == 0 {
		q.charged = max(q.charged, g.now)
		g.queued = append(g.queued, q)
	}
	at := slices.IndexFunc(q.waiting, func(other *waiter) bool {
		return w.begun && !other.begun || w.begun == other.begun && w.order < other.order
	})
	if at < 0 {
		at = len(q.waiting)
	}
	if w.begun && w.costly {
		g.costlyBegun++
	}
	q.waiting = slices.Insert(q.waiting, at, w)
	g.waiting++
	return w
}

// removeLocked removes the i-th request of q.
func (g *Gate) removeLocked(q *orgQueue, i int) {
	if w := q.waiting[i]; w.begun && w.costly {
		g.costlyBegun--
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	g.waiting--
	if len(q.waiting) == 0 {
		at := slices.Index(g.queued, q)
		g.queued = slices.Delete(g.queued, at, at+1)
	}
}
