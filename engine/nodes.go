package engine

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"writ/engine/glob"
	"writ/engine/resource"
)

// boolNode is a boolean variable.
type boolNode struct{ id varID }

func (n *boolNode) test(f *frame) ref.Val { return types.Bool(f.boolean(n.id)) }

// keyNode is `'key' in intent.metadata`.
type keyNode struct{ key string }

func (n *keyNode) test(f *frame) ref.Val {
	_, ok := f.in.Intent.Metadata[n.key]
	return types.Bool(ok)
}

// intNode is a comparison of an integer variable with a constant.
type intNode struct {
	src  source
	op   string
	want int64
}

func (n *intNode) test(f *frame) ref.Val {
	got, err := n.src.number(f)
	if err != nil {
		return err
	}
	switch n.op {
	case operators.Equals:
		return types.Bool(got == n.want)
	case operators.NotEquals:
		return types.Bool(got != n.want)
	case operators.Less:
		return types.Bool(got < n.want)
	case operators.LessEquals:
		return types.Bool(got <= n.want)
	case operators.Greater:
		return types.Bool(got > n.want)
	default:
		return types.Bool(got >= n.want)
	}
}

// textNode is an equality of a string variable with a constant.
type textNode struct {
	src    source
	want   string
	negate bool
}

func (n *textNode) test(f *frame) ref.Val {
	got, err := n.src.text(f)
	if err != nil {
		return err
	}
	return types.Bool((got == n.want) != n.negate)
}

// affixNode is startsWith, endsWith or contains.
type affixNode struct {
	src   source
	want  string
	match func(s, want string) bool
}

func (n *affixNode) test(f *frame) ref.Val {
	got, err := n.src.text(f)
	if err != nil {
		return err
	}
	return types.Bool(n.match(got, n.want))
}

// regexNode is matches.
type regexNode struct {
	src source
	re  *regex
}

func (n *regexNode) test(f *frame) ref.Val {
	got, err := n.src.text(f)
	if err != nil {
		return err
	}
	return f.match(n.re, got)
}

// setNode is `variable in [constants]`.
type setNode struct {
	src source
	set map[string]struct{}
}

func (n *setNode) test(f *frame) ref.Val {
	got, err := n.src.text(f)
	if err != nil {
		return err
	}
	_, ok := n.set[got]
	return types.Bool(ok)
}

// matchNode is glob, resource_glob or action_matches on a variable.
type matchNode struct {
	src source
	m   matcher
}

func (n *matchNode) test(f *frame) ref.Val {
	got, err := n.src.text(f)
	if err != nil {
		return err
	}
	return f.match(n.m, got)
}

// computedNode is glob, resource_glob, action_matches or matches on a computed
// string.
type computedNode struct {
	id  int64
	arg interpreter.InterpretableV2
	m   matcher
}

// ID implements [interpreter.Interpretable].
func (n *computedNode) ID() int64 { return n.id }

// Eval implements [interpreter.Interpretable].
func (n *computedNode) Eval(a interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(a))
}

// Exec implements [interpreter.InterpretableV2].
func (n *computedNode) Exec(ef *interpreter.ExecutionFrame) ref.Val {
	switch v := n.arg.Exec(ef).(type) {
	case types.String:
		return frameOf(ef.Activation).match(n.m, string(v))
	case *types.Err:
		return v
	default:
		return types.MaybeNoSuchOverloadErr(v)
	}
}

// resourceNode asks something of the readings of the resource: whether it holds of
// one that a block looks at or, where every is set, of all that an allowance has to
// cover.
type resourceNode struct {
	every bool
	// list is set for globs and equality, re for regular expressions, else holds is
	// asked of each text.
	list  *glob.List
	re    *regex
	holds func(text string) bool
	steps func(text string) int
	// charged is set where the conditions of rules share a budget.
	charged bool
}

func (n *resourceNode) test(f *frame) ref.Val {
	if n.every {
		return n.testEvery(f)
	}
	for i := range f.readings.BlockLen() {
		reading := f.readings.BlockAt(i)
		if n.charged && !f.charge(n.steps(reading.Text)) {
			return types.WrapErr(ErrTooMuchWork)
		}
		if n.matchesAny(f, reading) {
			return types.True
		}
	}
	return types.False
}

func (n *resourceNode) testEvery(f *frame) ref.Val {
	stops := f.readings.Stops()
	for i := range f.readings.AllowLen() {
		reading := f.readings.AllowAt(i)
		if n.charged && !f.charge(n.steps(reading.Text)) {
			return types.WrapErr(ErrTooMuchWork)
		}
		if !n.matchesEvery(f, reading, stops) {
			return types.False
		}
	}
	return types.Bool(f.readings.AllowLen() > 0)
}

func (n *resourceNode) matchesAny(f *frame, reading resource.Reading) bool {
	if n.list == nil {
		return n.asked(f, reading.Text)
	}
	i, _ := n.list.MatchAny(reading)
	return i >= 0
}

func (n *resourceNode) matchesEvery(f *frame, reading resource.Reading, stops resource.Stops) bool {
	if n.list == nil {
		return n.asked(f, reading.Text)
	}
	return n.list.MatchEvery(reading, stops)
}

func (n *resourceNode) asked(f *frame, text string) bool {
	if n.re != nil {
		return n.re.matches(&f.work, text)
	}
	return n.holds(text)
}

// readingNode is resource_glob on intent.resource, which is one reading at a time.
type readingNode struct{ list *glob.List }

func (n *readingNode) test(f *frame) ref.Val {
	if !f.charge(n.list.Steps(f.reading.Text)) {
		return types.WrapErr(ErrTooMuchWork)
	}
	if f.every {
		return types.Bool(n.list.MatchEvery(f.reading, f.readings.Stops()))
	}
	i, _ := n.list.MatchAny(f.reading)
	return types.Bool(i >= 0)
}
