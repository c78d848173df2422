package admission

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config configures a Gate.
type Config struct {
	// Slots is the number of requests that are worked on at once. It should be the number of
	// processors.
	Slots int
	// Deadline is how long a decision may wait for a slot. It must be positive. Work on
	// documents may wait managingPatience times as long.
	Deadline time.Duration
	// Metrics is the registry in which the gate registers its metrics.
	Metrics prometheus.Registerer
}

// Verdict is the gate's answer to a request.
type Verdict uint8

// The verdicts. All but Admitted are refusals. The metrics use their names as label values.
const (
	// Admitted means that the request has a slot. It holds the slot until Leave.
	Admitted Verdict = iota
	// QueueFull means that the request was refused at once, because too many others wait.
	QueueFull
	// QueueDeadline means that the request was refused because it had waited, or would wait,
	// for too long.
	QueueDeadline
)

// Kind is a kind of work. Each kind waits in a queue of its own.
type Kind uint8

// The kinds.
const (
	// Deciding is the work on a decision.
	Deciding Kind = iota
	// Managing is the work on documents and on the history. It is always costly.
	Managing
)

// Work describes the work that needs a slot.
type Work struct {
	Org  string
	Kind Kind
	// Costly says that the work is known to take long.
	Costly bool
	// Patient says that the work is never refused. It waits until its context ends. The caller
	// must bound the amount of patient work.
	Patient bool
}

// Gate hands out slots. All methods are safe for concurrent use.
type Gate struct {
	slots    int
	most     int // the number of slots that one organization, or costly work, may hold
	deadline time.Duration
	metrics  *metrics
	waiters  sync.Pool

	mu            sync.Mutex
	organizations map[string]*organization
	queued        []*orgQueue   // the queues with a waiting request
	waiting       int           // the requests that wait in all queues
	paused        int           // the paused work of all queues
	free          int           // the free slots
	costlyWorking int           // the slots that costly work holds
	costlyBegun   int           // the costly work in all queues that has begun
	now           time.Duration // the charge of the queue that was served last
	order         uint64        // the last number in the order of arrival
}

// New returns an open gate.
func New(cfg Config) *Gate {
	g := &Gate{
		slots: cfg.Slots, free: cfg.Slots, most: max(1, cfg.Slots-1), deadline: cfg.Deadline,
		organizations: make(map[string]*organization),
		waiters: sync.Pool{New: func() any {
			return &waiter{verdict: make(chan Slot, 1), timer: time.NewTimer(time.Hour)}
		}},
	}
	g.metrics = newMetrics(cfg.Metrics, g)
	return g
}

// Enter asks for a slot and blocks while the work waits in its queue. If the verdict is
// Admitted, the caller must call [Slot.Leave].
func (g *Gate) Enter(ctx context.Context, w Work) (Slot, Verdict) {
	g.mu.Lock()
	q := g.orgQueueLocked(w.Org, w.Kind)
	patience := g.deadline
	if w.Kind == Managing {
		patience *= managingPatience
	}
	if !w.Patient {
		if v := g.judgeLocked(q, patience); v != Admitted {
			g.mu.Unlock()
			g.metrics.rejected[v].Inc()
			return Slot{}, v
		}
	}
	g.order++
	work := work{queue: q, costly: w.Costly || w.Kind == Managing, order: g.order}
	if len(q.waiting) == 0 && g.freeLocked(work) {
		s := g.startLocked(work)
		g.mu.Unlock()
		return s, Admitted
	}
	waiter := g.queueLocked(work)
	g.mu.Unlock()
	return g.wait(ctx, q, waiter, w.Patient, patience)
}

// judgeLocked refuses a request if too many requests are waiting. A queue may not hold more
// requests without a slot than the places that are left for others. So later organizations find
// room, however many organizations fill their queues.
func (g *Gate) judgeLocked(q *orgQueue, patience time.Duration) Verdict {
	switch {
	case len(q.waiting)+q.paused >= min(maxWaiting/4, maxWaiting-g.waiting-g.paused):
		return QueueFull
	case time.Duration(len(q.waiting))*q.mean > patience*time.Duration(g.most) && q.age() > patience/2:
		return QueueDeadline
	}
	return Admitted
}

// wait waits until w, which is in q, gets a slot.
func (g *Gate) wait(ctx context.Context, q *orgQueue, w *waiter, patient bool, patience time.Duration) (Slot, Verdict) {
	since := w.since
	defer func() { g.metrics.wait.Observe(time.Since(since).Seconds()) }()
	var late <-chan time.Time
	if !patient {
		w.timer.Reset(patience)
		defer w.timer.Stop()
		late = w.timer.C
	}
	select {
	case s := <-w.verdict:
		g.waiters.Put(w)
		return s, Admitted
	case <-late:
	case <-ctx.Done():
	}
	if g.giveUp(q, w) {
		g.waiters.Put(w)
		g.metrics.rejected[QueueDeadline].Inc()
		return Slot{}, QueueDeadline
	}
	s := <-w.verdict // it was admitted at the same moment
	g.waiters.Put(w)
	return s, Admitted
}

// giveUp takes w out of its queue and reports whether w was still there.
func (g *Gate) giveUp(q *orgQueue, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	g.removeLocked(q, i)
	g.serveLocked() // the next request in the queue may be less costly
	return true
}

// freeLocked reports whether a slot is free that w may take.
func (g *Gate) freeLocked(w work) bool {
	return g.free > 0 && w.queue.org.working < g.most &&
		(!w.costly || g.costlyWorking < g.most && (w.begun || g.costlyWorking+g.costlyBegun < maxBegun))
}

// working returns the number of slots that are held.
func (g *Gate) working() int { return g.slots - g.free }

// serveLocked gives free slots to the queues that have been charged least.
func (g *Gate) serveLocked() {
	for g.free > 0 {
		q := g.nextLocked()
		if q == nil {
			return
		}
		w := q.waiting[0]
		g.removeLocked(q, 0)
		w.verdict <- g.startLocked(w.work)
	}
}

// nextLocked returns the queue to serve next, or nil if no waiting request may start.
func (g *Gate) nextLocked() *orgQueue {
	var next *orgQueue
	for _, q := range g.queued {
		if (next == nil || q.before(next)) && g.freeLocked(q.waiting[0].work) {
			next = q
		}
	}
	return next
}

// startLocked takes a slot for w and charges the queue the expected time.
func (g *Gate) startLocked(w work) Slot {
	q, expected := w.queue, w.queue.mean
	if w.begun {
		expected = slice
	}
	q.charged = max(q.charged, g.now)
	g.now = q.charged
	q.charged += expected
	q.org.working++
	if w.costly {
		g.costlyWorking++
	}
	g.free--
	return Slot{gate: g, work: w, start: time.Now(), expected: expected}
}
