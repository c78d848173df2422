package condition

// Clause is a condition as its author joined it: leaves, joined by conjunctions (All),
// disjunctions (Any) and negations (Not). A leaf is a comparison of a match object or a
// tree, an operand in CEL that is no &&, || or ! itself, or all of a condition in Rego.
// A constant is an All or an Any without Kids, and no leaf.
type Clause struct {
	Kind NodeKind
	Kids []*Clause
	// Text is a Leaf in CEL, or in Rego where the condition is in Rego.
	Text string
	// Index numbers the leaves of a condition from 0, from left to right, as
	// [Program.AskLeaves] does. It changes only with the condition.
	Index int
}

// Clause returns the condition's clause, nil where it does not compile. It parses a
// condition in CEL again, so that the condition itself stays small.
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

// Value combines what leaves are: said returns whether the leaf at an index is true, Unknown
// where it is an error. An operand that decides wins over one that is an error.
func (c *Clause) Value(said func(leaf int) Truth) Truth {
	switch c.Kind {
	case Leaf:
		return said(c.Index)
	case Not:
		return c.Kids[0].Value(said).Opposite()
	}
	return Joined(c.Kind, c.Kids, func(k *Clause) Truth { return k.Value(said) })
}

// Because returns the index of the first leaf that makes the clause what it is, with
// what leaves said: of a conjunction that is false the first operand that is false, of
// one that is an error the first that is an error. It is -1 where the clause has no leaf.
func (c *Clause) Because(said func(leaf int) Truth) int {
	if c.Kind == Leaf {
		return c.Index
	}
	value := c.Value(said)
	for _, k := range c.Kids {
		if c.Kind == Not || k.Value(said) == value {
			if i := k.Because(said); i >= 0 {
				return i
			}
		}
	}
	return -1
}

// Truth is what is known of a condition: that it is true, that it is false, or neither,
// such as where it is an error.
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

// Opposite is what a negation of t is.
func (t Truth) Opposite() Truth {
	switch t {
	case True:
		return False
	case False:
		return True
	}
	return Unknown
}

// Joined is what a conjunction (All) or a disjunction (Any) is. An operand that decides
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
