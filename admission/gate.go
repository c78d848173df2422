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
	// Managing is the work on documents and on the history. It is dear.
	Managing
)

// Work is what a slot is asked for.
type Work struct {
	Org  string
	Kind Kind
	// Dear is set where the work is known to be dear.
	Dear bool
	// Patient work was begun before and goes on: it is not refused, but waits until
	// its context ends. The caller bounds how much of it there is.
	Patient bool
}

// Gate hands out slots. All methods are safe for concurrent use.
type Gate struct {
	slots    int
	most     int // slots that one organization, or dear work, may hold: one fewer
	deadline time.Duration
	metrics  *metrics
	waiters  sync.Pool

	mu      sync.Mutex
	tenants map[string]*tenant
	queued  []*flow       // those with somebody waiting
	waiting int           // in all queues
	working int           // slots that are held
	dearly  int           // of those, by dear work
	paused  int           // dear work in all queues that was begun
	now     time.Duration // what the queue served last had been charged
	order   uint64        // of arrival
}

// New returns an open gate.
func New(cfg Config) *Gate {
	g := &Gate{
		slots: cfg.Slots, most: max(1, cfg.Slots-1), deadline: cfg.Deadline, tenants: make(map[string]*tenant),
		waiters: sync.Pool{New: func() any { return &waiter{verdict: make(chan Slot, 1), timer: time.NewTimer(time.Hour)} }},
	}
	g.metrics = newMetrics(cfg.Metrics, g)
	return g
}

// Slot is the right to run. Leave must be called once the work has ended, or
// waits for something, however it ends. A Slot belongs to one goroutine.
type Slot struct {
	gate     *Gate // nil: none, or given back
	flow     *flow
	start    time.Time
	expected time.Duration // charged in advance
	before   time.Duration // that the work held a slot before it yielded
	dear     bool
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
	s.flow.ended(s.before)
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
	w := g.queueLocked(s.flow, s.dear, true)
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
	if s.dear {
		g.dearly--
	}
	s.before += held
	s.flow.tenant.working--
	s.flow.charged += held - s.expected
	g.metrics.held[s.flow.kind].Add(held.Seconds())
}

// Enter asks for a slot and blocks while the work waits in its queue. If the
// verdict is Admitted, the slot must be left.
func (g *Gate) Enter(ctx context.Context, w Work) (Slot, Verdict) {
	g.mu.Lock()
	f := g.flowLocked(w.Org, w.Kind)
	dear := w.Dear || w.Kind == Managing
	if len(f.waiting) == 0 && g.freeLocked(f, dear, false) {
		s := g.startLocked(f, dear, f.mean)
		g.mu.Unlock()
		return s, Admitted
	}
	patience := g.deadline
	if w.Kind == Managing {
		patience *= managingPatience
	}
	if !w.Patient {
		if v := g.judgeLocked(f, patience); v != Admitted {
			g.mu.Unlock()
			g.metrics.rejected[v].Inc()
			return Slot{}, v
		}
	}
	waiter := g.queueLocked(f, dear, false)
	g.mu.Unlock()
	return g.wait(ctx, f, waiter, w.Patient, patience)
}

// judgeLocked refuses what finds too much waiting before it.
func (g *Gate) judgeLocked(f *flow, patience time.Duration) Verdict {
	switch {
	case len(f.waiting) >= maxQueue || g.waiting >= maxWaiting:
		return QueueFull
	case time.Duration(len(f.waiting))*f.mean > patience*time.Duration(g.most):
		return QueueDeadline
	}
	return Admitted
}

// wait returns what becomes of w, which waits in f.
func (g *Gate) wait(ctx context.Context, f *flow, w *waiter, patient bool, patience time.Duration) (Slot, Verdict) {
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
	if g.giveUp(f, w) {
		g.waiters.Put(w)
		g.metrics.rejected[QueueDeadline].Inc()
		return Slot{}, QueueDeadline
	}
	s := <-w.verdict // it was admitted at the same moment
	g.waiters.Put(w)
	return s, Admitted
}

// giveUp takes w out of its queue, and reports whether it was still there.
func (g *Gate) giveUp(f *flow, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(f.waiting, w)
	if i < 0 {
		return false
	}
	g.removeLocked(f, i)
	g.serveLocked() // what was behind it may be less dear
	return true
}

// freeLocked reports whether there is a slot for f's work.
func (g *Gate) freeLocked(f *flow, dear, begun bool) bool {
	return g.working < g.slots && f.tenant.working < g.most &&
		(!dear || g.dearly < g.most && (begun || g.dearly+g.paused < maxBegun))
}

// serveLocked gives free slots to the queues that have been charged least.
func (g *Gate) serveLocked() {
	for g.working < g.slots {
		f := g.nextLocked()
		if f == nil {
			return
		}
		w := f.waiting[0]
		dear, expected := w.dear, f.mean
		if w.begun {
			expected = slice
		}
		g.removeLocked(f, 0)
		w.verdict <- g.startLocked(f, dear, expected)
	}
}

// nextLocked returns the queue to serve, or nil where nobody may start.
func (g *Gate) nextLocked() *flow {
	var next *flow
	for _, f := range g.queued {
		if (next == nil || f.before(next)) && g.freeLocked(f, f.waiting[0].dear, f.waiting[0].begun) {
			next = f
		}
	}
	return next
}

// startLocked takes a slot for f and charges what is expected.
func (g *Gate) startLocked(f *flow, dear bool, expected time.Duration) Slot {
	f.charged = max(f.charged, g.now)
	g.now = f.charged
	s := Slot{gate: g, flow: f, start: time.Now(), expected: expected, dear: dear}
	f.charged += s.expected
	f.tenant.working++
	g.working++
	if dear {
		g.dearly++
	}
	return s
}
