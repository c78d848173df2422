package engine

import "slices"

// node is a condition as a tree whose every node is true or false of any
// intent: a comparison with a field that is missing is false. Forms 1 and 2
// parse into one node, in which a comparison of kindDecimal can also fail; that
// and a CEL expression become two (see translation). Both renderings are written
// from it.
type node struct {
	kind nodeKind
	// kids are the operands of all, any (none make all true and any false) and
	// not (exactly one), and what opEach and opSome ask of an item.
	kids []*node
	// field, op and values are a leaf's. Only opIn and the globs, which ask
	// whether any of them fits, have several values, and opExists has none.
	field  field
	op     operator
	values []constant
	// reads says how a comparison with the resource reads it.
	reads reads
}

// reads is how a comparison with the resource reads it.
type reads uint8

const (
	// readsOne: the condition is asked as a whole, for one reading at a time.
	readsOne reads = iota
	// readsAny: the comparison is true where it is for one reading that a block
	// looks at, readsEvery where it is for all that an allowance has to cover.
	readsAny
	readsEvery
)

type nodeKind uint8

const (
	nodeAll nodeKind = iota
	nodeAny
	nodeNot
	nodeLeaf
	// nodeOpaque stands for a part of a CEL expression of which nothing is
	// known. It can be indexed around and cannot be rendered.
	nodeOpaque
)

// operator is a leaf's comparison. There are no negated ones: a negation is a
// nodeNot, so that it is true of a missing field.
type operator uint8

const (
	opEq operator = iota
	opGt
	opGte
	opLt
	opLte
	opIn
	opExists
	opGlob
	opResourceGlob
	opActionGlob
	opRegex
	opContains
	opStartsWith
	opEndsWith
	// opEach and opSome are true where the field is there and its kid is of each
	// or of one item of the list that its text is.
	opEach
	opSome
	// opSize is an operator of forms 1 and 2 alone: it becomes a comparison of kindSize.
	opSize
)

// constant is what a field is compared with: num for a field of kindInt,
// kindDigits or kindSize, str for any other.
type constant struct {
	str string
	num int64
}

func all(kids ...*node) *node { return combine(nodeAll, kids) }

func anyOf(kids ...*node) *node { return combine(nodeAny, kids) }

// combine flattens nested operands of the same kind and drops the neutral ones,
// so that equal conditions render alike however they were written.
func combine(kind nodeKind, kids []*node) *node {
	flat := make([]*node, 0, len(kids))
	for _, k := range kids {
		switch {
		case k.kind == kind:
			flat = append(flat, k.kids...)
		case k.isConst(kind == nodeAny):
			return k
		default:
			flat = append(flat, k)
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return &node{kind: kind, kids: flat}
}

func not(n *node) *node {
	switch {
	case n.kind == nodeNot:
		return n.kids[0]
	case n.isConst(true):
		return always(false)
	case n.isConst(false):
		return always(true)
	}
	return &node{kind: nodeNot, kids: []*node{n}}
}

func always(truth bool) *node {
	if truth {
		return &node{kind: nodeAll}
	}
	return &node{kind: nodeAny}
}

func opaque() *node { return &node{kind: nodeOpaque} }

func compare(f field, op operator, values ...constant) *node {
	return &node{kind: nodeLeaf, field: f, op: op, values: values}
}

// exists is true of an intent that has f.
func exists(f field) *node {
	switch {
	case f.kind == kindDigits || f.kind == kindDecimal:
		return compare(f, opExists)
	case !f.optional():
		return always(true)
	case f.inCost():
		return compare(cost(), opExists)
	}
	return compare(f, opExists)
}

// isConst reports whether n is always(truth).
func (n *node) isConst(truth bool) bool {
	kind := nodeAny
	if truth {
		kind = nodeAll
	}
	return n.kind == kind && len(n.kids) == 0
}

// some reports whether pred holds for n or a node below it.
func (n *node) some(pred func(*node) bool) bool {
	return pred(n) || slices.ContainsFunc(n.kids, func(k *node) bool { return k.some(pred) })
}

func (n *node) isOpaque() bool { return n.kind == nodeOpaque }

func (n *node) isResource() bool {
	return n.kind == nodeLeaf && n.field.name == resourceField
}

// readsResource reports whether n needs one reading of the resource to be chosen.
func (n *node) readsResource() bool { return n.isResource() && n.reads == readsOne }

// reading returns n with each comparison with the resource as the outcome of the
// rule wants it read. stricter says whether n being true makes the outcome
// stricter: then one reading of a block is enough. Where it makes the outcome
// milder, every reading of an allowance is needed.
func (n *node) reading(stricter bool) *node {
	switch {
	case n.kind == nodeNot:
		return not(n.kids[0].reading(!stricter))
	case n.isResource():
		leaf := *n
		leaf.reads = readsEvery
		if stricter {
			leaf.reads = readsAny
		}
		return &leaf
	case n.kind == nodeLeaf || len(n.kids) == 0:
		return n
	}
	return combine(n.kind, affirmAll(n.kids, func(k *node) *node { return k.reading(stricter) }))
}

// quantified is true where n is of each (opEach) or some (opSome) item of f.
func quantified(f field, op operator, n *node) *node {
	return &node{kind: nodeLeaf, field: f, op: op, kids: []*node{n}}
}

// outcomes returns of which intents the tree n of form 1 or 2 is true and of
// which it is false.
func outcomes(n *node) translation {
	switch n.kind {
	case nodeAll:
		t := total(always(true))
		for _, k := range n.kids {
			t = t.and(outcomes(k))
		}
		return t
	case nodeAny:
		t := total(always(false))
		for _, k := range n.kids {
			t = t.or(outcomes(k))
		}
		return t
	case nodeNot:
		return outcomes(n.kids[0]).not()
	case nodeLeaf:
		return n.leafOutcomes()
	}
	return unknown()
}

func (n *node) leafOutcomes() translation {
	text := n.field
	text.kind = kindString
	missing := not(exists(text))
	switch {
	case n.op == opEach || n.op == opSome:
		item := outcomes(n.kids[0])
		other := opEach + opSome - n.op
		return translation{quantified(n.field, n.op, item.holds), anyOf(missing, quantified(n.field, other, item.fails))}
	case n.field.kind == kindDecimal:
		return translation{n, anyOf(missing, all(exists(n.field), not(n)))}
	}
	return total(n)
}

func (o operator) isGlob() bool { return o == opGlob || o == opResourceGlob || o == opActionGlob }

// count returns the number of nodes.
func (n *node) count() int {
	total := 1
	for _, k := range n.kids {
		total += k.count()
	}
	return total
}
