package admission

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Slot is the right to run. Leave must be called once the work has ended, or
// waits for something, however it ends. A Slot belongs to one goroutine.
//
// Nil Slots, zero Slots and those that were given back may be used: their methods do nothing.
type Slot struct {
	gate  *Gate // nil: none, or given back
	place *place
	state uint64 // of the place; if it has another one, the slot was taken away
	hold
	before time.Duration // that the work held a slot before it yielded
}

// hold is what is known of who holds a slot.
type hold struct {
	queue    *orgQueue
	start    time.Time
	expected time.Duration // charged in advance
	costly   bool
}

// place is where a slot's holder is.
type place struct {
	// state counts what happens to the slot. It is odd while the holder may wait for
	// something else than a processor. Only then may the gate change it before the
	// holder does.
	state atomic.Uint64

	// The rest is the gate's, under its lock.
	seen uint64 // the state when the gate last looked
	hold
}

// Leave gives the slot back and charges its time.
func (s *Slot) Leave() {
	if s == nil || s.gate == nil {
		return
	}
	g := s.gate
	s.gate = nil
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.place.state.Load() == s.state {
		s.before += g.vacateLocked(s.place)
	} else {
		g.comeBackLocked(s)
	}
	s.queue.ended(s.before)
	g.serveLocked()
}

// MayWait says that the work may wait for something else than a processor, such as the
// store, until Run. If it does so for a slice while others want to run, they get its slot.
// It reports whether that was new. Who waits for other work that may need a slot must say
// so: that might wait for this one.
func (s *Slot) MayWait() bool {
	if s == nil || s.gate == nil || s.mayWait() {
		return false
	}
	s.state++
	s.place.state.Store(s.state)
	return true
}

// Run ends what MayWait has begun, and reports whether there was anything to end. It waits
// for a slot if others were given this one; it never fails.
func (s *Slot) Run() bool {
	switch {
	case s == nil || s.gate == nil || !s.mayWait():
		return false
	case s.place.state.CompareAndSwap(s.state, s.state+1):
		s.state++
	default:
		s.gate.mu.Lock()
		s.gate.comeBackLocked(s)
		s.awaitUnlock(back)
	}
	return true
}

func (s *Slot) mayWait() bool { return s.state%2 == 1 }

// Yield lets others go first once the slot has been held for a slice, and returns
// how long that took. Long work calls it between its parts, which should take
// less than a slice each. It never fails: of an organization's work, what was
// begun is served first.
func (s *Slot) Yield() time.Duration {
	if s == nil || s.gate == nil || s.mayWait() || time.Since(s.start) < slice {
		return 0
	}
	began := time.Now()
	s.gate.mu.Lock()
	s.before += s.gate.vacateLocked(s.place)
	s.awaitUnlock(begun)
	return time.Since(began)
}

// awaitUnlock waits for another slot in place of one that is lost. It unlocks the gate.
func (s *Slot) awaitUnlock(was stage) {
	g, before := s.gate, s.before
	w := g.queueLocked(s.queue, s.costly, was)
	g.serveLocked()
	g.mu.Unlock()
	runtime.Gosched() // to requests that are not at the gate yet
	*s = <-w.verdict
	s.before = before
	g.waiters.Put(w)
}

// vacateLocked makes a slot free that is held, charges its time and returns that.
func (g *Gate) vacateLocked(p *place) time.Duration {
	held := time.Since(p.start)
	if p.costly {
		g.costlyWorking--
	}
	p.queue.org.working--
	p.queue.charged += held - p.expected
	g.metrics.held[p.queue.kind].Add(held.Seconds())
	p.state.Store((p.state.Load() + 2) &^ 1) // another, and even
	p.hold = hold{}
	g.free = append(g.free, p)
	return held
}

// takeBack takes slots away from those who have waited for something else since it last
// looked. It looks again as long as somebody waits for a slot.
func (g *Gate) takeBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.places {
		was := p.seen
		p.seen = p.state.Load()
		if p.seen%2 == 1 && p.seen == was && p.state.CompareAndSwap(was, was+1) {
			p.queue.org.away++
			g.away++
			g.vacateLocked(p)
		}
	}
	g.serveLocked()
	g.watching = false
	g.watchLocked()
}

// watchLocked has takeBack run once a slice as long as somebody waits for a slot.
func (g *Gate) watchLocked() {
	if g.waiting > 0 && !g.watching {
		g.watching = true
		g.watch.Reset(slice)
	}
}

// comeBackLocked ends the absence of work whose slot was taken away.
func (g *Gate) comeBackLocked(s *Slot) {
	s.queue.org.away--
	g.away--
}
