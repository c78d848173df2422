package rego

import (
	"time"

	"writ/engine/condition"
)

// DefaultTimeout is the time limit that all conditions of one evaluation share. The limit on steps
// normally ends a condition earlier. The timeout ends work that does not count as steps. A
// condition takes about 20 µs, so the timeout is not reached even on a busy machine.
const DefaultTimeout = 250 * time.Millisecond

// QueryTimeout bounds a [Query] for one intent. It is longer than [DefaultTimeout], because
// no request waits for a query.
const QueryTimeout = 2 * time.Second

const (
	// maxGrowth is how many times larger than its inputs a value may become. For example, a0 := [x,
	// x], a1 := [a0, a0], … doubles the value with every line, and so does x*x. Nested loops over
	// constant ranges multiply it.
	maxGrowth = 1 << 12
	// splitGrowth is how many times more memory a text takes when each character is a
	// value of its own.
	splitGrowth = 16
	// stepsPerExpr is the price of evaluating an expression, in the engine's steps. An evaluation
	// takes one to two microseconds, including OPA's allocations.
	stepsPerExpr = 256
	// termBytes is the size of a value without its text: its term and its location.
	termBytes = 96
	// maxNames bounds how many names in a row are replaced by their values.
	maxNames = 8
)

// budget ends one evaluation. It implements OPA's Cancel. OPA calls Cancelled before each
// expression and within some loops of built-in functions. Cancelled counts steps and looks at the
// clock. So a budget needs no timer, and OPA starts no goroutine that waits for a context.
//
// A budget belongs to one evaluation on one goroutine.
type budget struct {
	work  *condition.Work // nil: steps are not counted
	now   func() time.Time
	end   time.Time
	asked uint
	spent bool
}

// askedPerLook is the number of calls of Cancelled for each look at the clock.
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

// charge counts steps, and reports whether the evaluation may go on.
func (b *budget) charge(steps int) bool {
	if b.work != nil && !b.work.Charge(steps) {
		b.spent = true
	}
	return !b.spent
}

// left returns how many more steps the evaluation may take.
func (b *budget) left() int {
	if b.work == nil {
		return 1 << 30
	}
	return b.work.Left()
}
