package rego

import "time"

// DefaultTimeout is how long one evaluation may take. A condition takes some
// 20 µs, so that only one that was written to take long gets there.
const DefaultTimeout = 50 * time.Millisecond

// maxSpent is how many times as long as one condition all conditions of one
// evaluation may take together, however many rules and readings of the resource
// there are.
const maxSpent = 4

// deadline ends one evaluation. It implements OPA's Cancel by looking at the
// clock itself whenever OPA asks, which it does before each expression and
// within every loop of a built-in function: that needs neither the goroutine
// that OPA would start for a context nor a timer.
//
// It belongs to one evaluation, on one goroutine.
type deadline struct {
	now     func() time.Time
	end     time.Time
	asked   uint
	expired bool
}

// askedPerLook is how many times OPA asks for each look at the clock.
const askedPerLook = 16

func newDeadline(now func() time.Time, d time.Duration) *deadline {
	return &deadline{now: now, end: now().Add(d)}
}

// Cancel ends the evaluation at once.
func (d *deadline) Cancel() { d.expired = true }

// Cancelled reports whether the evaluation must end.
func (d *deadline) Cancelled() bool {
	if d.expired {
		return true
	}
	d.asked++
	if d.asked%askedPerLook == 0 {
		d.expired = d.now().After(d.end)
	}
	return d.expired
}
