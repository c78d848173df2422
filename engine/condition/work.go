package condition

import (
	"time"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

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

// NewWork is that of an evaluation which has done nothing yet.
func NewWork(t Turn) Work { return Work{turn: t, yields: yieldEvery} }

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

// match reports whether one of m's patterns matches s, at their charge.
func (f *Frame) match(m matcher, s string) ref.Val {
	if !f.Work.Charge(m.Steps(s)) {
		return tooMuchWork
	}
	if re, ok := m.(*regex); ok {
		return types.Bool(re.matches(&f.Work, s))
	}
	return types.Bool(m.Match(s) >= 0)
}

// apartFromPatterns estimates what an expression costs besides the calls that
// charge for themselves.
type apartFromPatterns struct{ sizes }

// EstimateCallCost implements [checker.CostEstimator].
func (a apartFromPatterns) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if function == overloads.Matches || takesPatterns(function) {
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1}}
	}
	return a.sizes.EstimateCallCost(function, overload, target, args)
}
