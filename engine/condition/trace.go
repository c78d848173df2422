package condition

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
