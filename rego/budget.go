package rego

import (
	"time"

	"writ/engine/condition"
)

// DefaultTimeout bounds the conditions of one evaluation together. Steps bound them first. The
// timeout ends work that steps do not count. A condition takes some 20 µs, so a busy machine does
// not reach the timeout.
const DefaultTimeout = 250 * time.Millisecond

// QueryTimeout bounds a [Query] for one intent. It is longer than [DefaultTimeout], because
// no request waits for a query.
const QueryTimeout = 2 * time.Second

const (
	// maxGrowth is how many times larger than its inputs a value may become: a0 := [x, x], a1 :=
	// [a0, a0], … doubles with every line, and so does x*x. Loops over constant ranges multiply
	// likewise.
	maxGrowth = 1 << 12
	// splitGrowth is how many times more memory a text takes when each character is a
	// value of its own.
	splitGrowth = 16
	// stepsPerExpr is the price of evaluating an expression, in the engine's steps: one to two
	// microseconds, with OPA's allocations.
	stepsPerExpr = 256
	// termBytes is the size of a value without its text: its term and its location.
	termBytes = 96
	// maxNames bounds how many names are followed one after another.
	maxNames = 8
)

// budget ends one evaluation. It implements OPA's Cancel. OPA asks it before each expression and
// within some loops of built-in functions; it then counts steps and looks at the clock. So it
// needs no timer, and not the goroutine that OPA starts for a context.
//
// It belongs to one evaluation, on one goroutine.
type budget struct {
	work  *condition.Work // nil: not counted
	now   func() time.Time
	end   time.Time
	asked uint
	spent bool
}

// askedPerLook is the number of OPA's questions for each look at the clock.
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
