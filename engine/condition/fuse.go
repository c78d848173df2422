package condition

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"writ/engine/resource"
)

// fnResource are the functions that ask the readings of the resource, in what is rendered
// of match objects and trees.
var fnResource = [...]string{resource.ForBlock: "resource_any", resource.ForAllow: "resource_every"}

// Names of the functions that read metadata values as what they stand for, and
// of the one of CEL's that makes a list of a text.
const (
	fnItems          = "items"
	fnDecimalCompare = "decimal_compare"
	fnSplit          = "split"
)

// takesPatterns reports whether a function of CEL is one of ours that takes patterns.
func takesPatterns(name string) bool {
	op, ok := called(name)
	return ok && op.IsGlob()
}

// decorator returns the one planning step that writ adds to CEL. It replaces
// `variable op constant` by a node that reads the frame's Go value, constant
// lists by Go sets and pattern lists by compiled matchers, which it records in
// p. Whatever it does not know is left to CEL.
func decorator(p *Program) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if call, ok := i.(interpreter.InterpretableCall); ok {
			return fuseCall(p, call)
		}
		return i, nil
	}
}

// sourceOf returns the source that an attribute stands for, and the field. Attributes of
// local variables, of computed values and with further selections stand for none.
func sourceOf(i interpreter.InterpretableV2) (source, Field, bool) {
	none := source{}
	a, ok := i.(interpreter.InterpretableAttribute)
	if !ok {
		return none, Field{}, false
	}
	attr, ok := a.Attr().(interpreter.NamespacedAttribute)
	if !ok || len(attr.CandidateVariableNames()) != 1 {
		return none, Field{}, false
	}
	f, ok := fieldByPath(attr.CandidateVariableNames()[0])
	if !ok {
		return none, Field{}, false
	}
	quals := attr.Qualifiers()
	if len(quals) == 0 {
		return errorIfMissing(f), f, f.Kind == Text || f.Kind == Int || f.ID == Metadata
	}
	if f.ID != Metadata || len(quals) != 1 || quals[0].IsOptional() {
		return none, Field{}, false
	}
	q, ok := quals[0].(interpreter.ConstantQualifier)
	if !ok {
		return none, Field{}, false
	}
	key, ok := q.Value().(types.String)
	value := MetadataKey(string(key))
	return errorIfMissing(value), value, ok
}

// fused is a predicate in the place of an expression node.
type fused struct {
	id int64
	predicate
}

// ID implements [interpreter.Interpretable].
func (n *fused) ID() int64 { return n.id }

// Eval implements [interpreter.Interpretable].
func (n *fused) Eval(a interpreter.Activation) ref.Val { return n.ask(frameOf(a)) }

// Exec implements [interpreter.InterpretableV2].
func (n *fused) Exec(ef *interpreter.ExecutionFrame) ref.Val { return n.ask(frameOf(ef.Activation)) }

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

// fuseCall replaces a call by a predicate where it can. Calls with patterns it
// must replace: a pattern that is computed cannot be checked before it is used.
func fuseCall(p *Program, call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	args, name := call.Args(), call.Function()
	switch {
	case takesPatterns(name):
		return fusePatterns(p, call)
	case name == fnList:
		return planList(call)
	case name == fnItems:
		return &ofComputed{call.ID(), args[0], celItems}, nil
	case len(args) != 2:
		return call, nil
	}
	if l, ok := args[1].(*listNode); ok && name == operators.In {
		return fuseList(p, call, args[0], l)
	}
	if src, f, ok := sourceOf(args[0]); ok {
		if c, ok := args[1].(interpreter.InterpretableConst); ok {
			return fuseConst(p, call, name, src, f, c.Value()), nil
		}
		return call, nil
	}
	if name == overloads.Matches {
		return fuseRegex(call), nil
	}
	c, ok := args[0].(interpreter.InterpretableConst)
	if !ok {
		return call, nil
	}
	src, f, ok := sourceOf(args[1])
	if !ok {
		return call, nil
	}
	if key, ok := c.Value().(types.String); ok && call.OverloadID() == overloads.InMap && f.ID == Metadata {
		return &fused{call.ID(), &presence{source{field: MetadataValue, key: string(key)}}}, nil
	}
	return fuseConst(p, call, mirrored(name), src, f, c.Value()), nil
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

func fuseConst(
	p *Program, call interpreter.InterpretableCall, function string, src source, f Field, c ref.Val,
) interpreter.InterpretableV2 {
	negated := function == operators.NotEquals
	if negated {
		function = operators.Equals
	}
	op, known := called(function)
	values, ok := constantValues(f, c)
	if function == operators.In {
		op, known = In, f.Kind == Text
	} else if len(values) != 1 {
		known = false
	}
	if !known || !ok {
		return call
	}
	asked, err := p.comparison(src, f.Kind, op, values)
	if err != nil {
		return call
	}
	if negated {
		asked = &negation{asked}
	}
	return &fused{call.ID(), asked}
}

// constantValues returns what a field is compared with, if it can be.
func constantValues(f Field, c ref.Val) ([]Constant, bool) {
	switch v := c.(type) {
	case types.Int:
		return []Constant{{Num: int64(v)}}, f.Kind == Int
	case types.String:
		return []Constant{{Str: string(v)}}, f.Kind == Text
	case traits.Lister:
		members, ok := texts(v)
		return Texts(members...), ok && f.Kind == Text
	}
	return nil, false
}

// fuseRegex replaces the call of matches on a computed string, whose length
// nothing but the frame's work bounds.
func fuseRegex(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	c, ok := call.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return call
	}
	if s, ok := c.Value().(types.String); ok {
		if re, err := compileRegex(string(s)); err == nil {
			return matchComputed(call.ID(), call.Args()[0], re)
		}
	}
	return call
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
