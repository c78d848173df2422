package condition

// This file has the functions that only traces use.

// AskLeaves evaluates each leaf of the program by itself, including leaves that [Program.Eval]
// skips. It yields the values in the order of [Clause.Index].
func (p *Program) AskLeaves(f *Frame, yield func(ok bool, err error)) {
	f.Work.Charge(p.load) // if the budget is used up, every leaf is an error
	for _, leaf := range leavesOf(p.root) {
		one := Program{root: leaf}
		yield(one.Eval(f))
	}
}

// leavesOf returns the leaves of a planned condition.
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
			leaves = append(leaves, &expression{root: leaf, reasons: n.reasons})
		}
	default:
		return []predicate{n}
	}
	return leaves
}
