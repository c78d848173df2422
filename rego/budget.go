package rego

import (
	"time"

	"github.com/open-policy-agent/opa/v1/storage"

	"writ.example/writ/engine/condition"
)

// QueryTimeout bounds a [Query] for one intent. A query that takes longer is an error and decides
// nothing. No request waits for a query.
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
	stepsPerExpr = 384
	// stepsPerWith is the price of `with`. It copies the parts of the input that it changes.
	stepsPerWith = 8192
	// termBytes is the size of a value without its text: its term and its location.
	termBytes = 96
	// maxNames bounds how many names in a row are replaced by their values.
	maxNames = 8
)

// budget ends one evaluation. It implements OPA's Cancel. OPA calls Cancelled before each
// expression and within some loops of built-in functions. So a budget needs no timer, and OPA starts
// no goroutine that waits for a context.
//
// A condition is ended by its steps alone, so that the same condition decides the same for the same
// intent, however busy the machine is. Only a [Query], which decides nothing, is ended by a clock.
//
// A budget belongs to one evaluation on one goroutine.
type budget struct {
	work  *condition.Work  // nil: steps are not counted
	now   func() time.Time // nil: time is not limited
	end   time.Time
	asked uint
	spent bool
	// added counts the values that were added to each of the condition's collections.
	added map[int]*keys
	// metadata has the values that the condition may read as lists. values has those that it has read.
	metadata map[string]string
	values   map[string]*condition.Value
	// lists has the documents that the modules may read below root.
	lists condition.Lists
	root  storage.Path
}

// askedPerLook is the number of calls of Cancelled for each look at the clock.
const askedPerLook = 16

// inSteps returns a budget for a condition. work counts its steps.
func inSteps(work *condition.Work) *budget { return &budget{work: work} }

// inTime returns a budget of the time d by the clock now.
func inTime(now func() time.Time, d time.Duration) *budget {
	return &budget{now: now, end: now().Add(d)}
}

// Cancel ends the evaluation at once.
func (b *budget) Cancel() { b.spent = true }

// Cancelled reports whether the evaluation must end.
func (b *budget) Cancelled() bool {
	if !b.charge(stepsPerExpr) {
		return true
	}
	if b.now == nil {
		return false
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
