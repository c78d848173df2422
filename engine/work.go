package engine

import (
	"time"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// maxWork is how much all conditions of one evaluation may do together,
// however many rules and readings of the resource there are: a condition that
// would exceed it is an error. What one condition may do is bounded when its
// rule is created, but a hundred of the dearest took fifteen seconds.
//
// A step is an instruction of a regular expression for one character, 64
// places of a glob for one character, one of CEL's cost units, or a byte that a
// function in Rego makes: some 8 ns. It
// is enough for the dearest regular expression on four readings of the longest
// resource, and for 5,000 ordinary ones on an ordinary resource. Steps are
// counted rather than timed, so that the same evaluation always decides the same.
const maxWork = 1 << 24

// macroSteps is how many steps a cost unit takes that a macro repeats: CEL
// interprets it, and boxes what it looks at.
const macroSteps = 4

// yieldEvery is how many steps conditions do between two offers to yield: some
// 130 µs.
const yieldEvery = 1 << 14

// Turn is the right to run, which an evaluation shares with others. Yield lets
// them run where it is their turn, and returns how long that took.
type Turn interface {
	Yield() time.Duration
}

// Work is what the conditions of one evaluation did together, in steps.
type Work struct {
	done    int
	turn    Turn // nil: not shared
	yields  int  // what done has to reach for the next offer
	yielded time.Duration
}

// newWork is that of an evaluation which has done nothing yet.
func newWork(t Turn) Work { return Work{turn: t, yields: yieldEvery} }

// Charge adds steps, of which there are at least 0, and reports whether they may
// be done. Others may run before it returns.
func (w *Work) Charge(steps int) bool {
	w.done += min(steps, maxWork+1)
	if w.turn != nil && w.done >= w.yields {
		w.yields = w.done + yieldEvery
		w.offer()
	}
	return w.done <= maxWork
}

// offer lets others run where it is their turn. The turn is not nil.
func (w *Work) offer() { w.yielded += w.turn.Yield() }

// Left is how many steps may still be done.
func (w *Work) Left() int { return max(0, maxWork-w.done) }

// Yielded is how long others ran, which is none of the evaluation's time.
func (w *Work) Yielded() time.Duration { return w.yielded }

// charge adds steps to the work, and reports whether they may be done.
func (f *frame) charge(steps int) bool { return f.work.Charge(steps) }

// match reports whether one of m's patterns matches s, at their charge.
func (f *frame) match(m matcher, s string) ref.Val {
	if !f.charge(m.Steps(s)) {
		return types.WrapErr(ErrTooMuchWork)
	}
	if re, ok := m.(*regex); ok {
		return types.Bool(re.matches(&f.work, s))
	}
	return types.Bool(m.Match(s) >= 0)
}

// apartFromPatterns estimates what an expression costs besides the calls that
// charge for themselves.
type apartFromPatterns struct{ sizes }

// EstimateCallCost implements [checker.CostEstimator].
func (a apartFromPatterns) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if function == overloads.Matches || isPatternFunction(function) {
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1}}
	}
	return a.sizes.EstimateCallCost(function, overload, target, args)
}
