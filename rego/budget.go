package rego

import (
	"time"

	"writ/engine/condition"
)

// DefaultTimeout bounds the conditions of one evaluation together. Steps bound them first;
// the timeout ends what steps do not count. A condition takes some 20 µs, so that a busy
// machine does not reach it.
const DefaultTimeout = 250 * time.Millisecond

// QueryTimeout bounds a [Query] for one intent. It is longer than [DefaultTimeout], because
// no request waits for a query.
const QueryTimeout = 2 * time.Second

const (
	// maxGrowth is how many times larger than what it is given a value that a
	// condition builds may become: a0 := [x, x], a1 := [a0, a0], … doubles with
	// every line, and so does x*x. Loops over constant ranges multiply likewise.
	maxGrowth = 1 << 12
	// splitGrowth is how many times more memory a text takes when each character is a
	// value of its own.
	splitGrowth = 16
	// stepsPerExpr is what evaluating an expression takes, in the engine's steps:
	// one to two microseconds with what OPA allocates for it.
	stepsPerExpr = 256
	// termBytes is what a value takes beyond its text: its term and its place.
	termBytes = 96
	// maxNames bounds how many names are followed one after another.
	maxNames = 8
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
