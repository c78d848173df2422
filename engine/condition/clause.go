package condition

// Clause is a condition as its author joined it: leaves in conjunctions (All), disjunctions
// (Any) and negations (Not). A leaf is a comparison of a match object or a tree, an operand in
// CEL that is not &&, || or ! itself, or a whole condition in Rego. A constant is an All or an
// Any without Kids, not a leaf.
type Clause struct {
	Kind NodeKind
	Kids []*Clause
	// Text is a Leaf in CEL, or in Rego where the condition is in Rego.
	Text string
	// Index numbers the leaves of a condition from 0, from left to right, as
	// [Program.AskLeaves] does. It changes only with the condition.
	Index int
}

// Clause returns the condition's clause, or nil where it does not compile. It parses CEL
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

// clause numbers the leaves of a tree from *next.
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

// Leaves returns the texts of the leaves by their index.
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

// Value combines the truths of leaves, which leaf returns by their index. An operand that
// decides wins over one that is Unknown.
func (c *Clause) Value(leaf func(i int) Truth) Truth {
	switch c.Kind {
	case Leaf:
		return leaf(c.Index)
	case Not:
		return c.Kids[0].Value(leaf).Opposite()
	}
	return Joined(c.Kind, c.Kids, func(k *Clause) Truth { return k.Value(leaf) })
}

// Because returns the index of the first leaf that decides the clause's value, or -1 where it
// has no leaf. A false conjunction is decided by its first false operand, and a failed one by
// its first failed operand.
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

// Truth is the value of a condition as far as it is known. An error is Unknown.
type Truth int8

// The truths.
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

// Opposite is the truth of a negation.
func (t Truth) Opposite() Truth {
	switch t {
	case True:
		return False
	case False:
		return True
	}
	return Unknown
}

// Joined is the truth of a conjunction (All) or a disjunction (Any). An operand that decides
// wins over one that is Unknown.
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
