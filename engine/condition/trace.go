package condition

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/interpreter"

	"writ/engine/resource"
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

// Matching is what the first list of a program says of an intent.
type Matching struct {
	// Entries are the indices of the entries that match, ascending. Of resources they
	// match one reading at least.
	Entries []int
	// Reading is the reading of the resource that settles it: the first that an entry
	// blocks or, of a list that allows, the first that no entry covers. It is the zero
	// Reading where there is none.
	Reading resource.Reading
}

// Matching returns what the program's first list says of f. allows says whether the list
// allows resources: else it blocks.
func (p *Program) Matching(f *Frame, allows bool) (m Matching) {
	add := func(index int) { m.Entries = append(m.Entries, index) }
	switch actions, ok := p.actions.(interface {
		each(action string, yield func(index int))
	}); {
	case p.list != nil && allows:
		p.covered(f, &m, add)
	case p.list != nil:
		p.blocked(f, &m, add)
	case ok:
		actions.each(f.texts[ActionType], add)
	}
	slices.Sort(m.Entries)
	m.Entries = slices.Compact(m.Entries)
	return m
}

func (p *Program) blocked(f *Frame, m *Matching, add func(index int)) {
	for i := range f.readings.BlockLen() {
		reading := f.readings.BlockAt(i)
		if p.list.Each(reading, resource.StopsAtSlash, add); len(m.Entries) > 0 && m.Reading.Readers == 0 {
			m.Reading = reading
		}
	}
}

func (p *Program) covered(f *Frame, m *Matching, add func(index int)) {
	stops := f.readings.Stops()
	for i := range f.readings.AllowLen() {
		reading := f.readings.AllowAt(i)
		if p.list.Each(reading, stops, add); !p.list.MatchEvery(reading, stops) && m.Reading.Readers == 0 {
			m.Reading = reading
		}
	}
}
