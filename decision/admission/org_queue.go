package admission

import (
	"slices"
	"time"
)

// organization holds the queues of one organization.
type organization struct {
	queues  [Managing + 1]orgQueue
	working int // the slots that it holds
}

// orgQueue is an organization's queue for one kind of work.
type orgQueue struct {
	org     *organization
	kind    Kind
	waiting []*waiter
	paused  int // the work that waits for something other than a slot
	// charged is the slot time that the queue was charged for. When the queue becomes busy,
	// charged is raised to the charge of the queue that was served last.
	charged time.Duration
	// mean is the mean slot time of the queue's last requests.
	mean time.Duration
}

// work is a request that holds a slot or waits for one.
type work struct {
	queue  *orgQueue
	order  uint64 // its number in the order of arrival
	costly bool
	begun  bool // the work has yielded; it goes before work that has not
}

// waiter is a request in a queue. When it is removed from the queue to be served, it is sent
// its slot.
type waiter struct {
	work
	verdict chan Slot // has room for one slot
	timer   *time.Timer
	since   time.Time
}

// before reports whether q is served before other. q is served first if it was charged less. If
// both were charged the same, the request that arrived first decides.
func (q *orgQueue) before(other *orgQueue) bool {
	if q.charged != other.charged {
		return q.charged < other.charged
	}
	return q.waiting[0].order < other.waiting[0].order
}

// age returns how long the oldest request of the queue has waited.
func (q *orgQueue) age() (age time.Duration) {
	for _, w := range q.waiting {
		age = max(age, time.Since(w.since))
	}
	return age
}

// orgQueueLocked returns the queue in which an organization's work of a kind waits.
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
		idle := func(q orgQueue) bool { return len(q.waiting) == 0 && q.paused == 0 }
		if t.working == 0 && idle(t.queues[Deciding]) && idle(t.queues[Managing]) {
			delete(g.organizations, org)
		}
	}
}

// queueLocked adds work to its queue. Work that has begun goes before other work. Otherwise the
// order of arrival decides.
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
