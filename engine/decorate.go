package engine

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"writ/engine/glob"
)

// Names of the functions that take patterns.
const (
	fnGlob          = "glob"
	fnResourceGlob  = "resource_glob"
	fnActionMatches = "action_matches"
	fnActionDenied  = "action_denied"
	fnResourceAny   = "resource_any"
	fnResourceEvery = "resource_every"
)

// Names of the functions that read metadata values as what they stand for, and
// of the one of CEL's that makes a list of a text.
const (
	fnItems          = "items"
	fnDecimalCompare = "decimal_compare"
	fnSplit          = "split"
)

func isPatternFunction(name string) bool {
	switch name {
	case fnGlob, fnResourceGlob, fnActionMatches, fnActionDenied, fnResourceAny, fnResourceEvery:
		return true
	}
	return false
}

// decorator returns the one planning step that writ adds to CEL. It replaces
// `variable op constant` by a node that reads the frame's Go value, constant
// lists by Go sets and pattern lists by compiled matchers, which it records in
// p. Whatever it does not know is left to CEL.
func decorator(p *program) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		switch n := i.(type) {
		case interpreter.InterpretableCall:
			return fuseCall(p, n)
		case interpreter.InterpretableAttribute:
			if src, ok := sourceOf(n); ok && src.kind == types.BoolKind {
				return fuse(n.ID(), &boolNode{src.id}), nil
			}
		}
		return i, nil
	}
}

// source is where a fused node reads its operand: a variable, or one key of the
// intent's metadata.
type source struct {
	id   varID
	key  string
	kind types.Kind
}

// sourceOf returns the source that an attribute stands for. Attributes of local
// variables, of computed values and with further selections stand for none.
func sourceOf(i interpreter.InterpretableV2) (source, bool) {
	a, ok := i.(interpreter.InterpretableAttribute)
	if !ok {
		return source{}, false
	}
	attr, ok := a.Attr().(interpreter.NamespacedAttribute)
	if !ok || len(attr.CandidateVariableNames()) != 1 {
		return source{}, false
	}
	v, ok := findVariable(attr.CandidateVariableNames()[0])
	if !ok {
		return source{}, false
	}
	quals := attr.Qualifiers()
	if len(quals) == 0 {
		return source{id: v.id, kind: v.typ.Kind()}, true
	}
	if v.id != varMetadata || len(quals) != 1 || quals[0].IsOptional() {
		return source{}, false
	}
	q, ok := quals[0].(interpreter.ConstantQualifier)
	if !ok {
		return source{}, false
	}
	key, ok := q.Value().(types.String)
	return source{id: varMetadata, key: string(key), kind: types.StringKind}, ok
}

// text reads a string source.
func (s *source) text(f *frame) (string, ref.Val) {
	if s.id != varMetadata {
		v, ok := f.str(s.id)
		if !ok {
			return "", errNoCost()
		}
		return v, nil
	}
	v, ok := f.in.Intent.Metadata[s.key]
	if !ok {
		return "", types.WrapErr(&absentError{"intent.metadata." + s.key})
	}
	return v, nil
}

// number reads an integer source.
func (s *source) number(f *frame) (int64, ref.Val) {
	n, ok := f.integer(s.id)
	if !ok {
		return 0, errNoCost()
	}
	return n, nil
}

// test is what a fused node does with the frame.
type test interface {
	test(f *frame) ref.Val
}

// fused is a test in the place of an expression node.
type fused struct {
	id int64
	t  test
}

func fuse(id int64, t test) *fused { return &fused{id: id, t: t} }

// ID implements [interpreter.Interpretable].
func (n *fused) ID() int64 { return n.id }

// Eval implements [interpreter.Interpretable].
func (n *fused) Eval(a interpreter.Activation) ref.Val { return n.t.test(frameOf(a)) }

// Exec implements [interpreter.InterpretableV2].
func (n *fused) Exec(ef *interpreter.ExecutionFrame) ref.Val {
	if f, ok := ef.Activation.(*frame); ok {
		return n.t.test(f)
	}
	return n.t.test(frameOf(ef.Activation))
}

// frameOf finds the frame under the scopes of comprehensions.
func frameOf(a interpreter.Activation) *frame {
	for {
		switch v := a.(type) {
		case *frame:
			return v
		case *interpreter.ExecutionFrame:
			a = v.Activation
		default:
			a = v.Parent()
		}
	}
}

// fuseCall replaces a call by a fused node where it can. Calls with patterns it
// must replace: a pattern that is computed cannot be checked before it is used.
func fuseCall(p *program, call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	args := call.Args()
	if isPatternFunction(call.Function()) {
		return fusePatterns(p, call)
	}
	if call.Function() == fnItems {
		return &itemsNode{id: call.ID(), arg: args[0]}, nil
	}
	if len(args) != 2 {
		return call, nil
	}
	if src, ok := sourceOf(args[0]); ok {
		if c, ok := args[1].(interpreter.InterpretableConst); ok {
			return fuseOr(call, fuseConst(call.Function(), src, c.Value()))
		}
		return call, nil
	}
	if call.Function() == overloads.Matches {
		return fuseRegex(call), nil
	}
	c, ok := args[0].(interpreter.InterpretableConst)
	if !ok {
		return call, nil
	}
	src, ok := sourceOf(args[1])
	if !ok {
		return call, nil
	}
	if key, ok := c.Value().(types.String); ok && call.OverloadID() == overloads.InMap && src.id == varMetadata {
		return fuse(call.ID(), &keyNode{key: string(key)}), nil
	}
	return fuseOr(call, fuseConst(mirrored(call.Function()), src, c.Value()))
}

func fuseOr(call interpreter.InterpretableCall, t test) (interpreter.InterpretableV2, error) {
	if t == nil {
		return call, nil
	}
	return fuse(call.ID(), t), nil
}

// mirrored returns the operator that means the same with its operands swapped,
// or "" where there is none.
func mirrored(op string) string {
	switch op {
	case operators.Equals, operators.NotEquals:
		return op
	case operators.Less:
		return operators.Greater
	case operators.LessEquals:
		return operators.GreaterEquals
	case operators.Greater:
		return operators.Less
	case operators.GreaterEquals:
		return operators.LessEquals
	}
	return ""
}

// fuseConst returns the test for `src op c`, or nil.
func fuseConst(op string, src source, c ref.Val) test {
	switch src.kind {
	case types.IntKind:
		if n, ok := c.(types.Int); ok && isComparison(op) {
			return &intNode{src: src, op: op, want: int64(n)}
		}
	case types.StringKind:
		if s, ok := c.(types.String); ok {
			return fuseText(op, src, string(s))
		}
		if list, ok := c.(traits.Lister); ok && op == operators.In {
			return fuseSet(src, list)
		}
	}
	return nil
}

func isComparison(op string) bool { return mirrored(op) != "" }

func fuseText(op string, src source, s string) test {
	switch op {
	case operators.Equals, operators.NotEquals:
		return &textNode{src: src, want: s, negate: op == operators.NotEquals}
	case overloads.StartsWith:
		return &affixNode{src: src, want: s, match: strings.HasPrefix}
	case overloads.EndsWith:
		return &affixNode{src: src, want: s, match: strings.HasSuffix}
	case overloads.Contains:
		return &affixNode{src: src, want: s, match: strings.Contains}
	case overloads.Matches:
		if re := compileRegex(s); re != nil {
			return &regexNode{src: src, re: re}
		}
	}
	return nil
}

// compileRegex returns nil where expr is no RE2 expression.
func compileRegex(expr string) *regex {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil
	}
	n, err := regexInstructions(expr)
	if err != nil {
		return nil
	}
	return &regex{re: re, instructions: n}
}

// fuseRegex replaces the call of matches on a computed string, whose length
// nothing but the frame's work bounds.
func fuseRegex(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	c, ok := call.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return call
	}
	if s, ok := c.Value().(types.String); ok {
		if re := compileRegex(string(s)); re != nil {
			return &computedNode{id: call.ID(), arg: call.Args()[0], m: re}
		}
	}
	return call
}

func fuseSet(src source, list traits.Lister) test {
	members, ok := texts(list)
	if !ok {
		return nil
	}
	set := make(map[string]struct{}, len(members))
	for _, m := range members {
		set[m] = struct{}{}
	}
	return &setNode{src: src, set: set}
}

// texts returns a list's members if all of them are strings.
func texts(list traits.Lister) ([]string, bool) {
	n, ok := list.Size().(types.Int)
	if !ok {
		return nil, false
	}
	members := make([]string, n)
	for i := range members {
		s, ok := list.Get(types.Int(i)).(types.String)
		if !ok {
			return nil, false
		}
		members[i] = string(s)
	}
	return members, true
}

// constantPatterns returns the patterns of a call: one string or a list of them.
func constantPatterns(function string, arg interpreter.InterpretableV2) ([]string, error) {
	if c, ok := arg.(interpreter.InterpretableConst); ok {
		switch v := c.Value().(type) {
		case types.String:
			return []string{string(v)}, nil
		case traits.Lister:
			if list, ok := texts(v); ok {
				return list, nil
			}
		}
	}
	if l, ok := arg.(interpreter.InterpretableConstructor); ok && len(l.InitVals()) == 0 {
		return nil, nil
	}
	return nil, fmt.Errorf("%s: the patterns must be constants", function)
}

// fusePatterns compiles the patterns of a call.
func fusePatterns(p *program, call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	if call.Function() == fnResourceAny || call.Function() == fnResourceEvery {
		return fuseResource(p, call)
	}
	patterns, err := constantPatterns(call.Function(), call.Args()[0])
	if err != nil {
		return nil, err
	}
	m, err := compileMatcher(call.Function(), patterns, p.use)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call.Function(), err)
	}
	if p.matcher == nil {
		p.matcher = m
	}
	subject := call.Args()[1]
	src, ok := sourceOf(subject)
	list, isList := m.(*glob.List)
	switch {
	case isList && ok && src.id == varResource:
		return fuse(call.ID(), &readingNode{list}), nil
	case ok && src.kind == types.StringKind:
		return fuse(call.ID(), &matchNode{src: src, m: m}), nil
	}
	return &computedNode{id: call.ID(), arg: subject, m: m}, nil
}

// fuseResource compiles resource_any(op, values) and resource_every(op, values).
func fuseResource(p *program, call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	op, err := constantPatterns(call.Function(), call.Args()[0])
	if err != nil {
		return nil, err
	}
	values, err := constantPatterns(call.Function(), call.Args()[1])
	if err != nil {
		return nil, err
	}
	n, err := newResourceNode(op[0], values, call.Function() == fnResourceEvery)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call.Function(), err)
	}
	n.charged = p.charged
	if n.list != nil && p.list == nil {
		p.list = n.list
	}
	return fuse(call.ID(), n), nil
}

// newResourceNode compiles the comparison op of the resource with values.
func newResourceNode(op string, values []string, every bool) (*resourceNode, error) {
	n := &resourceNode{every: every, steps: func(string) int { return 1 }}
	use := glob.Use(!every)
	var err error
	switch want := values[0]; op {
	case opResourceGlob.String():
		n.list, err = glob.Compile(values, use)
	case opIn.String():
		n.list, err = glob.Exactly(values, use)
	case opRegex.String():
		if n.re = compileRegex(want); n.re == nil {
			return nil, fmt.Errorf("not an RE2 expression: %s", Quote(want))
		}
		n.steps = n.re.Steps
	default:
		n.holds, err = textComparison(op, want)
	}
	if n.list != nil {
		n.steps = n.list.Steps
	}
	return n, err
}

// textComparison returns the comparison op of a text with want.
func textComparison(op, want string) (func(string) bool, error) {
	switch op {
	case opContains.String():
		return func(s string) bool { return strings.Contains(s, want) }, nil
	case opStartsWith.String():
		return func(s string) bool { return strings.HasPrefix(s, want) }, nil
	case opEndsWith.String():
		return func(s string) bool { return strings.HasSuffix(s, want) }, nil
	case opGt.String():
		return func(s string) bool { return s > want }, nil
	case opGte.String():
		return func(s string) bool { return s >= want }, nil
	case opLt.String():
		return func(s string) bool { return s < want }, nil
	case opLte.String():
		return func(s string) bool { return s <= want }, nil
	}
	return nil, fmt.Errorf("unknown operator %q", op)
}

// matcher is a compiled list of patterns. Match returns the index of the first
// pattern that matches s, or -1, and Steps bounds what that takes: see maxWork.
type matcher interface {
	Match(s string) int
	Steps(s string) int
}

func compileMatcher(function string, patterns []string, use glob.Use) (matcher, error) {
	switch function {
	case fnActionMatches:
		return CompileActions(patterns)
	case fnActionDenied:
		return compileDenied(patterns)
	case fnGlob:
		return glob.CompileSet(patterns)
	default:
		return glob.Compile(patterns, use)
	}
}
