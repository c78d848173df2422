package condition

import (
	"iter"
	"slices"

	"writ.example/writ/engine/resource"
)

// Node is a condition as a tree. Every node is true or false for any intent: a comparison with a
// missing field is false. Match objects and trees parse into one Node, in which a comparison of a
// Decimal can also fail. That Node and a CEL expression each become two Nodes: see [Outcomes].
// Both renderings are written from these two. Nodes are never modified.
type Node struct {
	Kind NodeKind
	// Kids are the operands of All, Any and Not. Not has exactly one. Without operands All is true
	// and Any is false. Every and Some have one kid, the test of their items.
	Kids []*Node
	// Field, Op and Values belong to a Leaf. Only In and the globs have several values: one match
	// is enough. Exists and IsTrue have none.
	Field  Field
	Op     Operator
	Values []Constant
	// Side is the side of a comparison with the resource. If it is 0, the whole condition is
	// evaluated for one reading at a time. Side is also set in a comparison with a metadata value
	// that has several readings: see [Node.IsRead].
	Side resource.Side
}

// NodeKind is the kind of a Node.
type NodeKind uint8

// The kinds of nodes.
const (
	All NodeKind = iota
	Any
	Not
	Leaf
	// Opaque stands for a part of a CEL expression that has no tree and no rendering. An index can
	// skip it.
	Opaque
)

// Constant is an operand. Num is its value for a field of Int, Digits or Size, Str for any other
// field.
type Constant struct {
	Str string
	Num int64
}

// Both returns the conjunction of kids.
func Both(kids ...*Node) *Node { return combine(All, kids) }

// Either returns the disjunction of kids.
func Either(kids ...*Node) *Node { return combine(Any, kids) }

// combine flattens nested operands of the same kind and drops operands that change nothing. So
// equal conditions have the same rendering, however they were written.
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

// Always returns a node that is truth for every intent.
func Always(truth bool) *Node {
	if truth {
		return &Node{Kind: All}
	}
	return &Node{Kind: Any}
}

func opaque() *Node { return &Node{Kind: Opaque} }

// Compare returns a leaf: the comparison of f with values.
func Compare(f Field, op Operator, values ...Constant) *Node {
	return &Node{Kind: Leaf, Field: f, Op: op, Values: values}
}

// Texts returns texts as constants for a field that holds text.
func Texts(texts ...string) []Constant {
	values := make([]Constant, len(texts))
	for i, s := range texts {
		values[i].Str = s
	}
	return values
}

// Has returns a tree that is true if the intent has f and f can be read as its kind.
func Has(f Field) *Node {
	switch {
	case f.Kind == Digits || f.Kind == Decimal:
		return Compare(f, Exists)
	case !f.Optional():
		return Always(true)
	}
	return Compare(f.Owner(), Exists)
}

// IsConst reports whether n is the node that Always(truth) returns.
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

// IsRendered reports whether Rego can express n. It can if nothing in n is opaque.
func (n *Node) IsRendered() bool { return !n.some(func(n *Node) bool { return n.Kind == Opaque }) }

// Reads reports whether n reads the field.
func (n *Node) Reads(id FieldID) bool {
	return n.some(func(n *Node) bool { return n.Kind == Leaf && n.Field.ID == id })
}

func (n *Node) isResource() bool { return n.Kind == Leaf && n.Field.ID == Resource }

// ReadsOneReading reports whether n is evaluated for one reading of the resource at a time.
func (n *Node) ReadsOneReading() bool { return n.isResource() && n.Side == 0 }

// Texts returns the values of a leaf whose field holds text.
func (n *Node) Texts() []string { return textsOf(n.Values) }

func textsOf(values []Constant) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Str
	}
	return texts
}

// sided returns n for side, with the side set in each comparison with the resource. For a block a
// comparison with the agent asks every name of the agent. A negation turns the side around.
func (n *Node) sided(side resource.Side) *Node {
	switch {
	case n.Kind == Not:
		return Negate(n.Kids[0].sided(side.Opposite()))
	case n.comparesAgent():
		if side == resource.ForBlock {
			return n.ofNames()
		}
		return n
	case n.Kind == Leaf && (n.isResource() || n.hasReadings(side)):
		leaf := *n
		leaf.Side = side
		return &leaf
	case n.Kind == Leaf && len(n.Kids) > 0:
		return quantified(n.Field, n.Op, n.Kids[0].sided(side))
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

// Affirm returns n with every negation moved down to a leaf. OPA's index finds rules by the
// equalities that they demand, but it ignores equalities inside a negation.
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

// quantified returns a leaf for the items of f. For Every it is true if n is true for each item,
// for Some if n is true for at least one.
func quantified(f Field, op Operator, n *Node) *Node {
	return &Node{Kind: Leaf, Field: f, Op: op, Kids: []*Node{n}}
}

// Outcomes has a condition as two trees. Holds is true if the condition is true, and Fails is true
// if the condition is false. For all other intents the condition is an error. In CEL false &&
// error is false and true || error is true, in either order. For this reason both trees are exact.
type Outcomes struct{ Holds, Fails *Node }

// total returns the outcomes of an expression that never fails.
func total(n *Node) Outcomes { return Outcomes{n, Negate(n)} }

func unknown() Outcomes { return Outcomes{opaque(), opaque()} }

func (o Outcomes) not() Outcomes { return Outcomes{o.Fails, o.Holds} }

func (o Outcomes) and(u Outcomes) Outcomes {
	return Outcomes{Both(o.Holds, u.Holds), Either(o.Fails, u.Fails)}
}

func (o Outcomes) or(u Outcomes) Outcomes { return o.not().and(u.not()).not() }

// outcomes returns the outcomes of n, the tree of a match object or a tree.
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
	case n.AsksNames():
		return total(n)
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

// Patterns yields the patterns of all globs in trees.
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
