package admission

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what a Gate works with.
type Config struct {
	// Slots is how many requests are worked on at once: the processors there are.
	Slots int
	// Deadline is how long a decision may wait for a slot; work on documents may
	// wait longer. It must be positive.
	Deadline time.Duration
	// Metrics is where the gate registers its metrics.
	Metrics prometheus.Registerer
}

// Verdict is what became of a request at the gate.
type Verdict uint8

// The verdicts. All but Admitted are refusals; their names are metric labels.
const (
	// Admitted gives the request a slot, until Leave.
	Admitted Verdict = iota
	// QueueFull refuses at once: too many wait.
	QueueFull
	// QueueDeadline refuses what has waited, or would have to wait, for too long.
	QueueDeadline
)

// Kind is a kind of work, which waits in a queue of its own.
type Kind uint8

// The kinds.
const (
	// Deciding is the work on a decision.
	Deciding Kind = iota
	// Managing is the work on documents and on the history. It is always costly.
	Managing
)

// Work is what a slot is asked for.
type Work struct {
	Org  string
	Kind Kind
	// Costly is set where the work is known to take long.
	Costly bool
	// Patient work continues what was begun: it is never refused and waits until its
	// context ends. The caller bounds how much of it there is.
	Patient bool
}

// Gate hands out slots. All methods are safe for concurrent use.
type Gate struct {
	slots    int
	most     int // slots that one organization, or costly work, may hold
	deadline time.Duration
	metrics  *metrics
	waiters  sync.Pool

	mu            sync.Mutex
	organizations map[string]*organization
	queued        []*orgQueue   // those with somebody waiting
	waiting       int           // in all queues
	working       int           // slots that are held
	costlyWorking int           // of those, by costly work
	paused        int           // costly work in all queues that was begun
	now           time.Duration // what the queue served last had been charged
	order         uint64        // of arrival
}

// New returns an open gate.
func New(cfg Config) *Gate {
	g := &Gate{
		slots: cfg.Slots, most: max(1, cfg.Slots-1), deadline: cfg.Deadline, organizations: make(map[string]*organization),
		waiters: sync.Pool{New: func() any { return &waiter{verdict: make(chan Slot, 1), timer: time.NewTimer(time.Hour)} }},
	}
	g.metrics = newMetrics(cfg.Metrics, g)
	return g
}

// Slot is the right to run. Leave must be called once the work has ended, or
// waits for something, however it ends. A Slot belongs to one goroutine.
type Slot struct {
	gate     *Gate // nil: none, or given back
	queue    *orgQueue
	start    time.Time
	expected time.Duration // charged in advance
	before   time.Duration // that the work held a slot before it yielded
	costly   bool
}

// Leave gives the slot back and charges its time. A slot that was given back is
// left alone, and so are the zero Slot and a nil one.
func (s *Slot) Leave() {
	if s == nil || s.gate == nil {
		return
	}
	g := s.gate
	s.gate = nil
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopLocked(s)
	s.queue.ended(s.before)
	g.serveLocked()
}

// Yield lets others go first once the slot has been held for a slice, and returns
// how long that took. Long work calls it between its parts, which should take
// less than a slice each. It never fails: of an organization's work, what was
// begun is served first. A nil Slot, the zero Slot
// and one that was given back do nothing.
func (s *Slot) Yield() time.Duration {
	if s == nil || s.gate == nil || time.Since(s.start) < slice {
		return 0
	}
	g := s.gate
	began := time.Now()
	g.mu.Lock()
	g.stopLocked(s)
	w := g.queueLocked(s.queue, s.costly, true)
	g.serveLocked()
	g.mu.Unlock()
	runtime.Gosched() // to requests that are not at the gate yet
	before := s.before
	*s = <-w.verdict
	s.before = before
	g.waiters.Put(w)
	return time.Since(began)
}

// stopLocked takes the slot away from s and charges its time.
func (g *Gate) stopLocked(s *Slot) {
	held := time.Since(s.start)
	g.working--
	if s.costly {
		g.costlyWorking--
	}
	s.before += held
	s.queue.org.working--
	s.queue.charged += held - s.expected
	g.metrics.held[s.queue.kind].Add(held.Seconds())
}

// Enter asks for a slot and blocks while the work waits in its queue. If the
// verdict is Admitted, the slot must be left.
func (g *Gate) Enter(ctx context.Context, w Work) (Slot, Verdict) {
	g.mu.Lock()
	q := g.orgQueueLocked(w.Org, w.Kind)
	costly := w.Costly || w.Kind == Managing
	if len(q.waiting) == 0 && g.freeLocked(q, costly, false) {
		s := g.startLocked(q, costly, q.mean)
		g.mu.Unlock()
		return s, Admitted
	}
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
	waiter := g.queueLocked(q, costly, false)
	g.mu.Unlock()
	return g.wait(ctx, q, waiter, w.Patient, patience)
}

// judgeLocked refuses what finds too much waiting before it.
func (g *Gate) judgeLocked(q *orgQueue, patience time.Duration) Verdict {
	switch {
	case len(q.waiting) >= maxWaiting/4 || g.waiting >= maxWaiting:
		return QueueFull
	case time.Duration(len(q.waiting))*q.mean > patience*time.Duration(g.most):
		return QueueDeadline
	}
	return Admitted
}

// wait returns what becomes of w, which waits in q.
func (g *Gate) wait(ctx context.Context, q *orgQueue, w *waiter, patient bool, patience time.Duration) (Slot, Verdict) {
	began := time.Now()
	defer func() { g.metrics.wait.Observe(time.Since(began).Seconds()) }()
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

// giveUp takes w out of its queue, and reports whether it was still there.
func (g *Gate) giveUp(q *orgQueue, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	g.removeLocked(q, i)
	g.serveLocked() // what was behind it may be less costly
	return true
}

// freeLocked reports whether there is a slot for q's work.
func (g *Gate) freeLocked(q *orgQueue, costly, begun bool) bool {
	return g.working < g.slots && q.org.working < g.most &&
		(!costly || g.costlyWorking < g.most && (begun || g.costlyWorking+g.paused < maxBegun))
}

// serveLocked gives free slots to the queues that have been charged least.
func (g *Gate) serveLocked() {
	for g.working < g.slots {
		q := g.nextLocked()
		if q == nil {
			return
		}
		w := q.waiting[0]
		costly, expected := w.costly, q.mean
		if w.begun {
			expected = slice
		}
		g.removeLocked(q, 0)
		w.verdict <- g.startLocked(q, costly, expected)
	}
}

// nextLocked returns the queue to serve, or nil where nobody may start.
func (g *Gate) nextLocked() *orgQueue {
	var next *orgQueue
	for _, q := range g.queued {
		if (next == nil || q.before(next)) && g.freeLocked(q, q.waiting[0].costly, q.waiting[0].begun) {
			next = q
		}
	}
	return next
}

// startLocked takes a slot for q and charges what is expected.
func (g *Gate) startLocked(q *orgQueue, costly bool, expected time.Duration) Slot {
	q.charged = max(q.charged, g.now)
	g.now = q.charged
	s := Slot{gate: g, queue: q, start: time.Now(), expected: expected, costly: costly}
	q.charged += s.expected
	q.org.working++
	g.working++
	if costly {
		g.costlyWorking++
	}
	return s
}
