package admission

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what a Gate works with.
type Config struct {
	// Deadline is how long a request may wait to be worked on. The gate aims at a
	// tenth of it for the work itself. It must be positive.
	Deadline time.Duration
	// Refusals is how many refusals a second cost little enough to be answered
	// without a pause. It must be positive.
	Refusals int
	// Metrics is where the gate registers its metrics.
	Metrics prometheus.Registerer
}

// Verdict is what became of a request at the gate.
type Verdict uint8

// The verdicts. All but Admitted are refusals; their names are metric labels.
const (
	// Admitted lets the request in, until Leave.
	Admitted Verdict = iota
	// QueueFull refuses at once: too many wait.
	QueueFull
	// QueueDeadline refuses a request that waited for Config.Deadline.
	QueueDeadline
)

// Gate admits requests. All methods are safe for concurrent use.
type Gate struct {
	deadline time.Duration
	metrics  *metrics
	waiters  sync.Pool

	mu      sync.Mutex
	limit   limit
	pauses  pauses
	working int
	room    room
	armed   bool        // expiry will run
	expiry  *time.Timer // refuses those whose deadline passes while nothing ends
}

// New returns an open gate.
func New(cfg Config) *Gate {
	g := &Gate{
		deadline: cfg.Deadline,
		limit:    newLimit(cfg.Deadline / 10),
		pauses:   pauses{every: time.Second / time.Duration(cfg.Refusals), most: min(cfg.Deadline/10*8, maxPause)},
		waiters:  sync.Pool{New: func() any { return &waiter{verdict: make(chan Verdict, 1)} }},
	}
	g.metrics = newMetrics(cfg.Metrics, g)
	return g
}

// Enter asks for a request that arrived at now to be worked on, and blocks while
// it waits. If the verdict is Admitted, Leave must be called with start once the
// work has ended, however it ends.
//
// An early request came before the pause of its connection was over. It gets in
// only where half of the limit is free, and never waits: those that keep to
// their Retry-After come first.
func (g *Gate) Enter(now time.Time, early bool) (start time.Time, v Verdict) {
	g.mu.Lock()
	limit := g.limit.n
	if early {
		limit /= 2
	}
	if g.working < limit && g.room.len == 0 {
		g.working++
		g.mu.Unlock()
		return now, Admitted
	}
	if !early {
		g.limit.reached = true
	}
	if early || g.room.len >= limit {
		g.mu.Unlock()
		g.metrics.rejected[QueueFull].Inc()
		return now, QueueFull
	}
	w := g.waiters.Get().(*waiter)
	w.deadline = now.Add(g.deadline)
	g.room.push(w)
	if !g.armed {
		g.armLocked(w.deadline)
	}
	g.mu.Unlock()
	return g.wait(w, now)
}

// wait returns what is decided about w, which came at now.
func (g *Gate) wait(w *waiter, now time.Time) (time.Time, Verdict) {
	v := <-w.verdict
	g.waiters.Put(w)
	start := time.Now()
	g.metrics.wait.Observe(start.Sub(now).Seconds())
	if v != Admitted {
		g.metrics.rejected[v].Inc()
	}
	return start, v
}

// Leave ends the work of a request that was admitted and began at start.
func (g *Gate) Leave(start time.Time) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.working--
	g.limit.observe(now, now.Sub(start))
	g.expireLocked(now)
	for g.working < g.limit.n && g.room.len > 0 {
		g.working++
		g.room.pop().verdict <- Admitted
	}
}

// Pause returns how long to leave a connection unread whose request was just
// refused.
func (g *Gate) Pause() time.Duration {
	now := time.Now()
	g.mu.Lock()
	d := g.pauses.next(now)
	g.mu.Unlock()
	g.metrics.paused.Add(d.Seconds())
	return d
}

// armLocked has expiry run at t.
func (g *Gate) armLocked(t time.Time) {
	g.armed = true
	if g.expiry == nil {
		g.expiry = time.AfterFunc(time.Until(t), g.expire)
		return
	}
	g.expiry.Reset(time.Until(t))
}

// expire refuses those that have waited too long.
func (g *Gate) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expireLocked(time.Now())
	g.armed = false
	if g.room.len > 0 {
		g.armLocked(g.room.first.deadline)
	}
}

func (g *Gate) expireLocked(now time.Time) {
	for g.room.len > 0 && !now.Before(g.room.first.deadline) {
		g.room.pop().verdict <- QueueDeadline
	}
}
