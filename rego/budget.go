package rego

import (
	"time"

	"writ/engine/condition"
)

// budget ends one evaluation. It implements OPA's Cancel by counting steps, and
// looking at the clock, whenever OPA asks, which it does before each expression
// and within some loops of built-in functions: that needs neither the goroutine
// that OPA would start for a context nor a timer.
//
// It belongs to one evaluation, on one goroutine.
type budget struct {
	work  *condition.Work // nil: not counted
	now   func() time.Time
	end   time.Time
	asked uint
	spent bool
}

// askedPerLook is how many times OPA asks for each look at the clock.
const askedPerLook = 16

func newBudget(work *condition.Work, now func() time.Time, d time.Duration) *budget {
	return &budget{work: work, now: now, end: now().Add(d)}
}

// Cancel ends the evaluation at once.
func (b *budget) Cancel() { b.spent = true }

// Cancelled reports whether the evaluation must end.
func (b *budget) Cancelled() bool {
	if !b.charge(stepsPerExpr) {
		return true
	}
	b.asked++
	if b.asked%askedPerLook == 0 {
		b.spent = b.now().After(b.end)
	}
	return b.spent
}

// charge adds steps, and reports whether they may be done.
func (b *budget) charge(steps int) bool {
	if b.work != nil && !b.work.Charge(steps) {
		b.spent = true
	}
	return !b.spent
}

// left is how many steps may still be done.
func (b *budget) left() int {
	if b.work == nil {
		return 1 << 30
	}
	return b.work.Left()
}
