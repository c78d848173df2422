package condition

import (
	"slices"
)

// Review is what a condition says that its author may not mean. Fields are named as
// match objects name them: "action_type", "metadata.env", or "metadata" where it is not
// known which key is read.
type Review struct {
	// Fields are all that the condition reads or asks the existence of, sorted. What
	// may be absent as a part of the cost is "cost" in Unguarded and Dodges.
	Fields []string
	// ExceptsResource is set where a condition in CEL or Rego holds because a comparison
	// with the resource does not.
	ExceptsResource bool
	// Unguarded are the metadata keys, and the cost, that a condition in CEL reads without
	// ever asking whether they are there, sorted.
	Unguarded []string
	// Dodges are the metadata keys, and the cost, without which the condition does not
	// hold, whatever is behind them, unless it asks for their existence itself, sorted:
	// of a match object, a tree and Rego.
	Dodges []string
	// TextOrder is what in a condition in CEL or Rego is ordered as text and looks like
	// a number, "" where nothing is.
	TextOrder string
	// Misordered says where a condition in Rego orders a metadata value as text that must
	// have been meant as a number. It is nil where none is.
	Misordered error
}

// ReviewOf returns the review of a condition that compiles and is not in Rego.
func ReviewOf(doc string) (r Review) {
	root, err := decode(doc)
	if err != nil {
		return r
	}
	if source, ok := root.member("cel"); ok {
		l, err := cels()
		if err != nil {
			return r
		}
		checked, err := l.check(source.text)
		if err != nil {
			return r
		}
		return reviewCEL(checked.NativeRep().Expr())
	}
	if tree, _, err := parse(root, true); err == nil {
		return reviewTree(tree)
	}
	return r
}

// names are names that a review collects.
type names map[string]bool

// without returns the names that are not in others, sorted.
func (n names) without(others names) []string {
	var kept []string
	for name := range n {
		if !others[name] {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	return kept
}

// reviewed is the name of f in a review.
func (f Field) reviewed() string {
	if f.ID == GovernedAgentID { // which is the intent's
		return fields[AgentID].name
	}
	return f.Label()
}

// whole is the name of what may be absent, with f.
func (f Field) whole() string {
	if f.isMetadata() {
		return f.Label()
	}
	return fields[f.row().owner].name
}

func reviewTree(tree *Node) Review {
	all, reads, asks := names{}, names{}, names{}
	var visit func(n *Node, negated bool)
	visit = func(n *Node, negated bool) {
		switch {
		case n.Kind != Leaf:
			for _, k := range n.Kids {
				visit(k, negated != (n.Kind == Not))
			}
			return
		case n.Field.Counter != nil: // which also a cost that is left out dodges, where it adds them up
			if n.Field.Counter.Sum && !negated {
				reads[FieldOf(CostAmount).whole()] = true
			}
			return
		case n.Op == Exists:
			asks[n.Field.whole()] = true
		case n.Field.Optional() && !negated:
			reads[n.Field.whole()] = true
		}
		all[n.Field.reviewed()] = true
	}
	visit(tree, false)
	return Review{Fields: all.without(nil), Dodges: reads.without(asks)}
}
