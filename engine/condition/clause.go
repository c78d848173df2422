package condition

// Clause is a condition as its author joined it. Its leaves are joined by conjunctions (All),
// disjunctions (Any) and negations (Not). There are three kinds of leaves. A match object or a tree
// has comparisons as leaves. CEL has the operands that are not themselves &&, || or !. A condition
// in Rego is one leaf. A constant is not a leaf: it is an All or an Any without Kids.
type Clause struct {
	Kind NodeKind
	Kids []*Clause
	// Text is the source of a Leaf. The language is Rego if the condition is in Rego, otherwise
	// CEL.
	Text string
	// Index numbers the leaves of a condition from 0, from left to right. [Program.AskLeaves] uses
	// the same numbers. The numbers change only if the condition changes.
	Index int
}

// Clause returns the condition's clause, or nil if the condition does not compile. It parses CEL
// again, so that the condition itself stays small.
func (c *Condition) Clause() *Clause {
	leaves := 0
	switch {
	case c.tree != nil:
		return c.tree.clause(&leaves)
	case c.cel != "":
		return celClause(c.cel)
	case c.Rego != "":
		return &Clause{Kind: Leaf, Text: c.Rego}
	}
	return nil
}

// clause returns n as a Clause. It numbers the leaves from *next.
func (n *Node) clause(next *int) *Clause {
	if n.Kind == Leaf {
		*next++
		return &Clause{Kind: Leaf, Text: n.CEL(), Index: *next - 1}
	}
	c := &Clause{Kind: n.Kind}
	for _, k := range n.Kids {
		c.Kids = append(c.Kids, k.clause(next))
	}
	return c
}

// Leaves returns the texts of the leaves, ordered by Index.
func (c *Clause) Leaves() []string {
	switch {
	case c == nil:
		return nil
	case c.Kind == Leaf:
		return []string{c.Text}
	}
	var texts []string
	for _, k := range c.Kids {
		texts = append(texts, k.Leaves()...)
	}
	return texts
}

// Value returns the value of the clause. leaf returns the value of the leaf with index i. One False
// operand makes an All False, and one True operand makes an Any True, even if other operands are
// Unknown.
func (c *Clause) Value(leaf func(i int) Truth) Truth {
	switch c.Kind {
	case Leaf:
		return leaf(c.Index)
	case Not:
		return c.Kids[0].Value(leaf).Opposite()
	}
	return Joined(c.Kind, c.Kids, func(k *Clause) Truth { return k.Value(leaf) })
}

// Because returns the index of the first leaf that decides the clause's value, or -1 if the clause
// has no leaf. The first false operand decides a false conjunction. The first failed operand
// decides a failed conjunction.
func (c *Clause) Because(leaf func(i int) Truth) int {
	if c.Kind == Leaf {
		return c.Index
	}
	value := c.Value(leaf)
	for _, k := range c.Kids {
		if c.Kind == Not || k.Value(leaf) == value {
			if i := k.Because(leaf); i >= 0 {
				return i
			}
		}
	}
	return -1
}

// Truth is True, False or Unknown. Unknown is the value of a condition that ended in an error.
type Truth int8

// The values of a condition.
const (
	Unknown Truth = iota
	False
	True
)

// TruthOf returns True or False.
func TruthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Opposite returns the value of the negation of a condition with value t.
func (t Truth) Opposite() Truth {
	switch t {
	case True:
		return False
	case False:
		return True
	}
	return Unknown
}

// Joined returns the value of a conjunction (All) or a disjunction (Any). One False operand makes
// an All False, and one True operand makes an Any True, even if other operands are Unknown.
func Joined[T any](kind NodeKind, kids []T, of func(kid T) Truth) Truth {
	decides, result := TruthOf(kind == Any), TruthOf(kind == All)
	for _, k := range kids {
		switch of(k) {
		case decides:
			return decides
		case Unknown:
			result = Unknown
		}
	}
	return result
}
