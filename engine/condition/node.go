package condition

import (
	"iter"
	"slices"

	"writ/engine/resource"
)

// Node is a condition as a tree. Every node is true or false of any intent: a comparison with
// a missing field is false. Match objects and trees parse into one Node, in which a comparison
// of Decimal can also fail. That Node and a CEL expression each become two (see outcomes),
// from which both renderings are written. Nodes are never modified.
type Node struct {
	Kind NodeKind
	// Kids are the operands of All, Any (none make All true and Any false) and Not (exactly
	// one), and the test of Every's and Some's items.
	Kids []*Node
	// Field, Op and Values are a Leaf's. Only In and the globs, which ask whether any of
	// them fits, have several values, and Exists and IsTrue have none.
	Field  Field
	Op     Operator
	Values []Constant
	// Side is the side of a comparison with the resource. With the zero Side the whole
	// condition is asked for one reading at a time.
	Side resource.Side
}

// NodeKind is what a Node is.
type NodeKind uint8

// The kinds of nodes.
const (
	All NodeKind = iota
	Any
	Not
	Leaf
	// Opaque stands for an unknown part of a CEL expression. An index can pass over it; it has
	// no rendering.
	Opaque
)

// Constant is an operand: Num for a field of Int, Digits or Size, Str for any other.
type Constant struct {
	Str string
	Num int64
}

// Both returns the conjunction of kids.
func Both(kids ...*Node) *Node { return combine(All, kids) }

// Either returns the disjunction of kids.
func Either(kids ...*Node) *Node { return combine(Any, kids) }

// combine flattens nested operands of the same kind and drops the neutral ones,
// so that equal conditions render alike however they were written.
func combine(kind NodeKind, kids []*Node) *Node {
	flat := make([]*Node, 0, len(kids))
	for _, k := range kids {
		switch {
		case k.Kind == kind:
			flat = append(flat, k.Kids...)
		case k.IsConst(kind == Any):
			return k
		default:
			flat = append(flat, k)
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return &Node{Kind: kind, Kids: flat}
}

// Negate returns the negation of n.
func Negate(n *Node) *Node {
	switch {
	case n.Kind == Not:
		return n.Kids[0]
	case n.IsConst(true):
		return Always(false)
	case n.IsConst(false):
		return Always(true)
	}
	return &Node{Kind: Not, Kids: []*Node{n}}
}

// Always returns the constant that is truth.
func Always(truth bool) *Node {
	if truth {
		return &Node{Kind: All}
	}
	return &Node{Kind: Any}
}

func opaque() *Node { return &Node{Kind: Opaque} }

// Compare returns a leaf.
func Compare(f Field, op Operator, values ...Constant) *Node {
	return &Node{Kind: Leaf, Field: f, Op: op, Values: values}
}

// Texts returns constants of a field that holds text.
func Texts(texts ...string) []Constant {
	values := make([]Constant, len(texts))
	for i, s := range texts {
		values[i].Str = s
	}
	return values
}

// Has returns a tree that is true of an intent that has f, as f is read.
func Has(f Field) *Node {
	switch {
	case f.Kind == Digits || f.Kind == Decimal:
		return Compare(f, Exists)
	case !f.Optional():
		return Always(true)
	}
	return Compare(f.Owner(), Exists)
}

// IsConst reports whether n is Always(truth).
func (n *Node) IsConst(truth bool) bool {
	kind := Any
	if truth {
		kind = All
	}
	return n.Kind == kind && len(n.Kids) == 0
}

func (n *Node) some(pred func(*Node) bool) bool {
	return pred(n) || slices.ContainsFunc(n.Kids, func(k *Node) bool { return k.some(pred) })
}

// IsRendered reports whether n has a rendering in Rego: nothing in it is opaque.
func (n *Node) IsRendered() bool { return !n.some(func(n *Node) bool { return n.Kind == Opaque }) }

func (n *Node) isResource() bool { return n.Kind == Leaf && n.Field.ID == Resource }

// ReadsOneReading reports whether n is asked for one reading of the resource at a time.
func (n *Node) ReadsOneReading() bool { return n.isResource() && n.Side == 0 }

// Texts returns the values of a leaf over a text.
func (n *Node) Texts() []string { return textsOf(n.Values) }

func textsOf(values []Constant) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Str
	}
	return texts
}

// sided returns n with the side of each comparison with the resource, where n as a whole is
// for side.
func (n *Node) sided(side resource.Side) *Node {
	switch {
	case n.Kind == Not:
		return Negate(n.Kids[0].sided(side.Opposite()))
	case n.isResource():
		leaf := *n
		leaf.Side = side
		return &leaf
	case n.Kind == Leaf || len(n.Kids) == 0:
		return n
	}
	return combine(n.Kind, each(n.Kids, func(k *Node) *Node { return k.sided(side) }))
}

func each(kids []*Node, f func(*Node) *Node) []*Node {
	out := make([]*Node, len(kids))
	for i, k := range kids {
		out[i] = f(k)
	}
	return out
}

// Affirm returns n with every negation at a leaf. OPA's index finds rules by the equalities
// they demand, but not by those under a negation.
func (n *Node) Affirm() *Node {
	switch {
	case n.Kind == All || n.Kind == Any:
		return combine(n.Kind, each(n.Kids, (*Node).Affirm))
	case n.Kind != Not:
		return n
	}
	deny := func(k *Node) *Node { return Negate(k).Affirm() }
	switch k := n.Kids[0]; k.Kind {
	case All:
		return Either(each(k.Kids, deny)...)
	case Any:
		return Both(each(k.Kids, deny)...)
	}
	return n
}

// quantified returns a leaf that is true where n is true of each item of f (Every), or of one
// (Some).
func quantified(f Field, op Operator, n *Node) *Node {
	return &Node{Kind: Leaf, Field: f, Op: op, Kids: []*Node{n}}
}

// Outcomes are a condition as two trees: one is true where the condition is true, the other
// where it is false. The condition is an error of all other intents. CEL's && and || let an
// operand that decides win over one that fails, in either order, which makes both trees exact.
type Outcomes struct{ Holds, Fails *Node }

// total returns the outcomes of an expression that never fails.
func total(n *Node) Outcomes { return Outcomes{n, Negate(n)} }

func unknown() Outcomes { return Outcomes{opaque(), opaque()} }

func (o Outcomes) not() Outcomes { return Outcomes{o.Fails, o.Holds} }

func (o Outcomes) and(u Outcomes) Outcomes {
	return Outcomes{Both(o.Holds, u.Holds), Either(o.Fails, u.Fails)}
}

func (o Outcomes) or(u Outcomes) Outcomes { return o.not().and(u.not()).not() }

// outcomes returns when the tree of a match object or a tree is true and when it is false.
func (n *Node) outcomes() Outcomes {
	switch n.Kind {
	case All:
		o := total(Always(true))
		for _, k := range n.Kids {
			o = o.and(k.outcomes())
		}
		return o
	case Any:
		o := total(Always(false))
		for _, k := range n.Kids {
			o = o.or(k.outcomes())
		}
		return o
	case Not:
		return n.Kids[0].outcomes().not()
	case Leaf:
		return n.leafOutcomes()
	}
	return unknown()
}

func (n *Node) leafOutcomes() Outcomes {
	missing := Negate(Has(n.Field.as(Text)))
	switch {
	case n.Op == Every || n.Op == Some:
		item := n.Kids[0].outcomes()
		other := Every + Some - n.Op
		return Outcomes{quantified(n.Field, n.Op, item.Holds), Either(missing, quantified(n.Field, other, item.Fails))}
	case n.Field.Kind == Decimal:
		return Outcomes{n, Either(missing, Both(Has(n.Field), Negate(n)))}
	}
	return total(n)
}

// Count returns the number of nodes.
func (n *Node) Count() int {
	total := 1
	for _, k := range n.Kids {
		total += k.Count()
	}
	return total
}

// Patterns yields the patterns of globs in trees.
func Patterns(trees ...*Node) iter.Seq[string] {
	return func(yield func(string) bool) {
		refuses := func(s string) bool { return !yield(s) }
		for _, n := range trees {
			if n.some(func(n *Node) bool {
				return n.Kind == Leaf && n.Op.IsGlob() && slices.ContainsFunc(n.Texts(), refuses)
			}) {
				return
			}
		}
	}
}
