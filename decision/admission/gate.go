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
	// Slots is the number of requests that run at once. Set it to the number of processors.
	Slots int
	// Deadline is how long a decision may wait for a slot. It must be positive. For work on
	// documents, the deadline is managingPatience times as long.
	Deadline time.Duration
	// Metrics registers the gate's metrics.
	Metrics prometheus.Registerer
}

// Verdict is the gate's answer to a request.
type Verdict uint8

// Every verdict except Admitted is a refusal. The metrics use the names as label values.
const (
	// Admitted means that the request has a slot until Leave.
	Admitted Verdict = iota
	// QueueFull means that the request was refused at once, because too many requests wait.
	QueueFull
	// QueueDeadline means that the request was refused because of the deadline. It had waited too
	// long, or would have.
	QueueDeadline
)

// Kind is a kind of work. Each kind has its own queue.
type Kind uint8

// These are the kinds of work.
const (
	// Deciding is the work on a decision.
	Deciding Kind = iota
	// Managing is work on documents and on the history. It always counts as costly.
	Managing
)

// Work describes work that needs a slot.
type Work struct {
	Org  string
	Kind Kind
	// Costly says that the work takes long.
	Costly bool
	// Patient says that the work is never refused. It waits until its context ends. The caller must
	// bound the amount of such work.
	Patient bool
}

// Gate assigns slots to requests. All methods are safe for concurrent use.
type Gate struct {
	slots    int
	most     int // how many slots one organization, or all costly work, may hold
	deadline time.Duration
	metrics  *metrics
	waiters  sync.Pool

	mu            sync.Mutex
	organizations map[string]*organization
	queued        []*orgQueue   // queues in which a request waits
	waiting       int           // number of requests that wait in all queues
	paused        int           // number of paused requests of all queues
	free          int           // number of free slots
	costlyWorking int           // number of slots that costly work holds
	costlyBegun   int           // amount of costly work, of all queues, that has begun
	now           time.Duration // the charge of the last served queue
	order         uint64        // the last assigned number in the order of arrival
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

// Enter asks for a slot and waits until the work gets one or is refused. If the verdict is
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

// judgeLocked refuses a request if too many requests wait. One queue may not have more requests
// without a slot than the places that are left for other queues. So a later organization finds
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

// wait waits until w gets a slot. w is in q.
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
	s := <-w.verdict // w was admitted at the same moment
	g.waiters.Put(w)
	return s, Admitted
}

// giveUp removes w from its queue and reports whether w was still there.
func (g *Gate) giveUp(q *orgQueue, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	g.removeLocked(q, i)
	g.serveLocked() // the queue's next request may be less costly
	return true
}

// freeLocked reports whether there is a free slot that w may take.
func (g *Gate) freeLocked(w work) bool {
	return g.free > 0 && w.queue.org.working < g.most &&
		(!w.costly || g.costlyWorking < g.most && (w.begun || g.costlyWorking+g.costlyBegun < maxBegun))
}

// working returns the number of slots in use.
func (g *Gate) working() int { return g.slots - g.free }

// serveLocked gives free slots to the queues with the least charge.
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

// nextLocked returns the queue to serve next. It returns nil if no waiting request may start.
func (g *Gate) nextLocked() *orgQueue {
	var next *orgQueue
	for _, q := range g.queued {
		if (next == nil || q.before(next)) && g.freeLocked(q.waiting[0].work) {
			next = q
		}
	}
	return next
}

// startLocked assigns a slot to w and charges the queue the expected time.
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
