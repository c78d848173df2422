package engine

import (
	"regexp"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
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

// regex is a regular expression as a list of one pattern.
type regex struct {
	re           *regexp.Regexp
	instructions int
}

// Match implements [matcher].
func (r *regex) Match(s string) int {
	if r.re.MatchString(s) {
		return 0
	}
	return -1
}

func (r *regex) steps(s string) int { return r.instructions * (len(s) + 1) }

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

// anyReadingNode is resource_any over the readings a blocked pattern is tried on.
type anyReadingNode struct{ m matcher }

func (n *anyReadingNode) test(f *frame) ref.Val {
	for i := range f.readings.Len() {
		if n.m.Match(f.readings.At(i)) >= 0 {
			return types.True
		}
	}
	return types.False
}

// everyReadingNode is resource_every over the readings an allowed pattern must
// cover.
type everyReadingNode struct{ m matcher }

func (n *everyReadingNode) test(f *frame) ref.Val {
	for i := range f.readings.NormalLen() {
		if n.m.Match(f.readings.NormalAt(i)) < 0 {
			return types.False
		}
	}
	return types.Bool(f.readings.NormalLen() > 0)
}
