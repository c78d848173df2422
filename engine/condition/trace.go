package condition

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/interpreter"
)

// What follows is asked for a trace alone.

// AskLeaves asks each leaf of the program by itself, those too that [Program.Eval] need
// not ask, and yields what it is, in the order of [Clause.Index].
func (p *Program) AskLeaves(f *Frame, yield func(ok bool, err error)) {
	f.Work.Charge(p.load) // a budget that is used up is an error of each leaf
	for _, leaf := range leavesOf(p.root) {
		one := Program{root: leaf}
		yield(one.Eval(f))
	}
}

// leavesOf returns the leaves of what [Plan] or CEL has planned.
func leavesOf(n predicate) []predicate {
	var leaves []predicate
	switch n := n.(type) {
	case *junction:
		for _, k := range n.kids {
			leaves = append(leaves, leavesOf(k)...)
		}
	case *negation:
		return leavesOf(n.of)
	case *expression:
		for _, leaf := range n.leaves {
			leaves = append(leaves, &expression{root: leaf})
		}
	default:
		return []predicate{n}
	}
	return leaves
}

// keepLeaves returns the planning step that keeps the leaves of e, an expression in CEL.
// It has to be the last step.
func (n *expression) keepLeaves(e ast.Expr) interpreter.InterpretableDecoratorV2 {
	places := map[int64]int{} // of the leaves, by the id of their expression
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
