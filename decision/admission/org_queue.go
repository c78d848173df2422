package admission

import (
	"slices"
	"time"
)

// organization has the queues of one organization.
type organization struct {
	queues  [Managing + 1]orgQueue
	working int // slots held
}

// orgQueue is an organization's queue for one kind of work.
type orgQueue struct {
	org     *organization
	kind    Kind
	waiting []*waiter
	paused  int // work that waits for something else than a slot
	// charged is the slot time that the queue was charged. When the queue becomes busy, it
	// is raised to the charge of the queue that was served last.
	charged time.Duration
	// mean is the mean slot time of the queue's last requests.
	mean time.Duration
}

// work is what holds a slot or waits for one.
type work struct {
	queue  *orgQueue
	order  uint64 // of arrival
	costly bool
	begun  bool // it has yielded, and goes before what has not
}

// waiter is a request in a queue. It is sent its slot when it is removed to be served.
type waiter struct {
	work
	verdict chan Slot // holds one
	timer   *time.Timer
	since   time.Time
}

// before reports whether q is served before other: q was charged less, or as much and its
// request arrived first.
func (q *orgQueue) before(other *orgQueue) bool {
	if q.charged != other.charged {
		return q.charged < other.charged
	}
	return q.waiting[0].order < other.waiting[0].order
}

// age is how long the oldest request of the queue has waited.
func (q *orgQueue) age() (age time.Duration) {
	for _, w := range q.waiting {
		age = max(age, time.Since(w.since))
	}
	return age
}

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
		idle := func(q orgQueue) bool { return len(q.waiting) == 0 && q.paused == 0 }
		if t.working == 0 && idle(t.queues[Deciding]) && idle(t.queues[Managing]) {
			delete(g.organizations, org)
		}
	}
}

// queueLocked adds work to its queue: begun work before other work, each in order of
// arrival.
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
