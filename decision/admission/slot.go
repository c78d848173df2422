package admission

import (
	"runtime"
	"time"
)

// Slot is the right to run. Leave must be called when the work ends, whatever its result,
// or when the rest of it is waiting. A Slot belongs to one goroutine.
//
// The methods of a nil Slot, a zero Slot and a Slot that was given back do nothing.
type Slot struct {
	gate *Gate // nil: none, or given back
	work
	paused   bool
	start    time.Time
	expected time.Duration // charged in advance
	before   time.Duration // that the work held a slot before it yielded or paused
}

// Leave gives the slot back and charges its time.
func (s *Slot) Leave() {
	if s == nil || s.gate == nil {
		return
	}
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.paused {
		s.endPauseLocked()
	} else {
		s.vacateLocked()
	}
	s.queue.mean += (s.before - s.queue.mean) / meanOver
	s.gate = nil
	g.serveLocked()
}

// Pause gives the slot back while the work waits for the store, or for other work that may
// need a slot. It reports whether there was a slot, which Resume then asks for again.
func (s *Slot) Pause() bool {
	if s == nil || s.gate == nil || s.paused {
		return false
	}
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.vacateLocked()
	s.paused = true
	s.queue.paused++
	s.gate.paused++
	s.gate.serveLocked()
	return true
}

// Resume waits for a slot after Pause, and reports whether the Slot was paused. It never
// fails.
func (s *Slot) Resume() bool {
	if s == nil || s.gate == nil || !s.paused {
		return false
	}
	s.gate.mu.Lock()
	s.endPauseLocked()
	s.begun = false
	s.awaitUnlock()
	return true
}

// Yield lets others go first once the slot has been held for a slice, and returns how long
// that took. Long work calls it between parts that take less than a slice each. It never
// fails. Begun work is served before the organization's other work.
func (s *Slot) Yield() time.Duration {
	if s == nil || s.gate == nil || s.paused || time.Since(s.start) < slice {
		return 0
	}
	began := time.Now()
	s.gate.mu.Lock()
	s.vacateLocked()
	s.begun = true
	s.awaitUnlock()
	return time.Since(began)
}

func (s *Slot) endPauseLocked() {
	s.paused = false
	s.queue.paused--
	s.gate.paused--
}

// awaitUnlock waits for another slot and unlocks the gate.
func (s *Slot) awaitUnlock() {
	g, before := s.gate, s.before
	w := g.queueLocked(s.work)
	g.serveLocked()
	g.mu.Unlock()
	runtime.Gosched() // to requests that are not at the gate yet
	*s = <-w.verdict
	s.before = before
	g.waiters.Put(w)
}

// vacateLocked gives the slot back and charges its time.
func (s *Slot) vacateLocked() {
	g, held := s.gate, time.Since(s.start)
	if s.costly {
		g.costlyWorking--
	}
	s.queue.org.working--
	s.queue.charged += held - s.expected
	g.metrics.held[s.queue.kind].Add(held.Seconds())
	s.before += held
	g.free++
}
