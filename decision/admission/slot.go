package admission

import (
	"runtime"
	"time"
)

// Slot is the right to run. Call Leave when the work ends, whatever its result. Leave may be called
// earlier if the work only waits from then on. A Slot belongs to one goroutine.
//
// The methods do nothing if the Slot is nil, is zero, or was given back.
type Slot struct {
	gate *Gate // nil if there is no slot, or after the slot was given back
	work
	paused   bool
	start    time.Time
	expected time.Duration // the time that was charged when the work started
	before   time.Duration // how long the work held slots before it last yielded or paused
}

// Leave gives the slot back. It charges the organization for the time that the slot was held.
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

// Pause gives the slot back while the work waits for the store, or for other work that may need a
// slot. It reports whether there was a slot to give back. If there was, Resume gets another slot.
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

// Resume waits for a slot after Pause. It reports whether s was paused. It never fails.
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

// Yield lets other requests go first if the slot has been held for a slice or longer. It
// returns how long the work waited. Long work calls Yield between parts that take less than a
// slice each. Yield never fails. Work that has begun is served before other work of the same
// organization.
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

// awaitUnlock queues the work for another slot, unlocks the gate, and waits until the slot is
// there.
func (s *Slot) awaitUnlock() {
	g, before := s.gate, s.before
	w := g.queueLocked(s.work)
	g.serveLocked()
	g.mu.Unlock()
	runtime.Gosched() // lets requests run that have not reached the gate yet
	*s = <-w.verdict
	s.before = before
	g.waiters.Put(w)
}

// vacateLocked gives the slot back. It replaces the expected time in the charge by the time that
// the slot was held.
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
