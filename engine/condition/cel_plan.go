package condition

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"writ.example/writ/engine/resource"
)

// plan turns a checked expression into a program. side is the side for calls of resource_glob.
func (s *language) plan(checked *cel.Ast, side resource.Side) (*Program, error) {
	load, err := s.load(checked)
	if err != nil {
		return nil, err
	}
	p := &Program{load: load, side: side}
	replace, err := p.fuse(checked.NativeRep())
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	planned := &expression{reasons: reasonsOf(checked.NativeRep().Expr())}
	planned.root, err = s.planner.NewInterpretable(checked.NativeRep(),
		interpreter.CustomDecoratorV2(replace.decorate),
		interpreter.Optimize(),
		interpreter.CompileRegexConstants(interpreter.MatchesRegexOptimization),
		interpreter.CustomDecoratorV2(planned.keepLeaves(checked.NativeRep().Expr())))
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	p.root = planned
	return p, nil
}

// fusions maps the ids of expressions to the code that writ runs for them. A predicate replaces a
// comparison of a field with constants. A compiled function replaces a call on a computed value.
// CEL plans all other expressions.
type fusions struct {
	predicates map[int64]*fused
	computed   map[int64]computed
}

// decorate is a planning step. It replaces the parts that writ plans itself.
func (x fusions) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if n, ok := x.predicates[i.ID()]; ok {
		return n, nil
	}
	if c, ok := x.computed[i.ID()]; ok {
		if call, ok := i.(interpreter.InterpretableCall); ok {
			return &ofComputed{call.ID(), call.Args()[c.operand], c.ask}, nil
		}
	}
	return i, nil
}

// fuse returns the fusions of an expression. Every call with patterns must be in the fusions,
// because a computed pattern could not be checked before the call.
func (p *Program) fuse(checked *ast.AST) (fusions, error) {
	x := fusions{make(map[int64]*fused), make(map[int64]computed)}
	for e := range parts(checked.Expr()) {
		n, err := p.fused(e)
		if err != nil {
			return x, err
		}
		if n != nil {
			x.predicates[e.ID()] = n
			continue
		}
		c, err := p.computed(e)
		if err != nil {
			return x, err
		}
		if c.ask != nil {
			x.computed[e.ID()] = c
		}
	}
	return x, nil
}

// fused is a predicate that replaces an expression.
type fused struct {
	id int64
	predicate
	missing ref.Val // the CEL value if the intent lacks a metadata key
}

// fused returns the predicate that replaces e, or nil if CEL has to plan e.
func (p *Program) fused(e ast.Expr) (*fused, error) {
	f, n, negated, ok := comparisonOf(e)
	if present, isPresence := presenceIn(e); isPresence {
		f, n, ok = present, Has(present), true
	}
	if ok && n.IsConst(false) { // x in []: CEL gives false without reading the field
		n = Compare(f, In)
	}
	if !ok || n.Kind != Leaf {
		return nil, nil
	}
	missing := f.missing()
	asked, err := p.leaf(n, failing(missing))
	switch {
	case err != nil && n.Op.IsGlob():
		return nil, fmt.Errorf("%s: %w", table[n.Op].symbol, err)
	case err != nil:
		return nil, nil //nolint:nilerr // CEL itself compares, such as int(intent.metadata.n) == 5
	case negated:
		asked = &negation{asked}
	}
	return &fused{e.ID(), asked, celFailure(missing)}, nil
}

// ID implements [interpreter.Interpretable].
func (n *fused) ID() int64 { return n.id }

// Eval implements [interpreter.Interpretable].
func (n *fused) Eval(a interpreter.Activation) ref.Val {
	return celResult(n.ask(frameOf(a)), n.missing)
}

// Exec implements [interpreter.InterpretableV2].
func (n *fused) Exec(ef *interpreter.ExecutionFrame) ref.Val { return n.Eval(ef.Activation) }

// celResult returns r as a CEL value. If r is the failure of an intent that lacks the field, the
// result is missing.
func celResult(r result, missing ref.Val) ref.Val {
	if r.failed == nil {
		return types.Bool(r.holds)
	}
	if v, ok := celFailures[r.failed]; ok {
		return v
	}
	if r.failed.Cause == CauseMissing && missing != nil {
		return missing
	}
	return celFailure(r.failed)
}

// frameOf finds the frame under the scopes of comprehensions.
func frameOf(a interpreter.Activation) *Frame {
	for {
		switch v := a.(type) {
		case *Frame:
			return v
		case *interpreter.ExecutionFrame:
			a = v.Activation
		default:
			a = v.Parent()
		}
	}
}

// computed is the function of a call, and the index of its operand, which CEL computes.
type computed struct {
	operand int
	ask     func(f *Frame, v ref.Val) ref.Val
}

// computed returns the function of a call on a computed text or time. For any other expression the
// result is the zero value.
func (p *Program) computed(e ast.Expr) (computed, error) {
	name, args := operandsOf(e)
	text := 0
	var n *Node
	switch {
	case name == fnItems:
		return computed{0, takesText(celItems)}, nil
	case timeParts[name]:
		if function, zone, ok := zoneOf(e); ok {
			return computed{0, inZone(function, zone)}, nil
		}
	case takesPatterns(name):
		patterns, ok := constantsOf(FieldOf(Item), args[0])
		if !ok {
			return computed{}, fmt.Errorf("%s: the patterns must be constants", name)
		}
		n, text = Compare(FieldOf(Item), calls[name], patterns...), 1
	case name == overloads.Matches:
		if pattern, ok := textLiteral(args[1]); ok {
			n = Compare(FieldOf(Item), Regex, Constant{Str: pattern})
		}
	case name == operators.In:
		if list, ok := listNamed(args[1]); ok {
			n = Compare(FieldOf(Item), InList, Constant{Str: list})
		}
	}
	if n == nil {
		return computed{}, nil
	}
	asked, err := p.test(n)
	if err != nil {
		return computed{}, fmt.Errorf("%s: %w", name, err)
	}
	return computed{text, takesText(func(f *Frame, s string) ref.Val { return celResult(asked(f, s), nil) })}, nil
}

// takesText returns a function that is ask for texts and an error for other values.
func takesText(ask func(f *Frame, s string) ref.Val) func(f *Frame, v ref.Val) ref.Val {
	return func(f *Frame, v ref.Val) ref.Val {
		if s, ok := v.(types.String); ok {
			return ask(f, string(s))
		}
		return types.MaybeNoSuchOverloadErr(v)
	}
}

// celItems implements items(text). It returns the items that the milder reading of a list has. It
// also charges for the macro that reads the items, because the number of items is known here.
func celItems(f *Frame, text string) ref.Val {
	v, ok := f.read(text)
	if !ok {
		return celFailure(ErrTooMuchWork)
	}
	return types.NewStringList(types.DefaultTypeAdapter, v.Items())
}

// ofComputed calls a function with a value that CEL computes.
type ofComputed struct {
	id  int64
	arg interpreter.InterpretableV2
	ask func(f *Frame, v ref.Val) ref.Val
}

// ID implements [interpreter.Interpretable].
func (n *ofComputed) ID() int64 { return n.id }

// Eval implements [interpreter.Interpretable].
func (n *ofComputed) Eval(a interpreter.Activation) ref.Val { return n.Exec(interpreter.AsFrame(a)) }

// Exec implements [interpreter.InterpretableV2].
func (n *ofComputed) Exec(ef *interpreter.ExecutionFrame) ref.Val {
	v := n.arg.Exec(ef)
	if types.IsError(v) {
		return v
	}
	return n.ask(frameOf(ef.Activation), v)
}

// keepLeaves returns the planning step that records the planned leaves of e. It must be the last
// planning step.
func (n *expression) keepLeaves(e ast.Expr) interpreter.InterpretableDecoratorV2 {
	places := map[int64]int{} // maps the id of a leaf's expression to its index in n.leaves
	var number func(e ast.Expr)
	number = func(e ast.Expr) {
		kind, operands := joined(e)
		if kind == Leaf {
			places[e.ID()] = len(places)
		}
		for _, operand := range operands {
			number(operand)
		}
	}
	number(e)
	n.leaves = make([]interpreter.InterpretableV2, len(places))
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if place, ok := places[i.ID()]; ok {
			n.leaves[place] = i
		}
		return i, nil
	}
}
