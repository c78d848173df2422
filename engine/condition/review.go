package condition

import (
	"slices"
)

// Review lists parts of a condition that its author may not have meant. Its fields have their
// names in match objects: "action_type", "metadata.env", or "metadata" if the key is unknown.
type Review struct {
	// Fields has all fields that the condition reads or tests for existence, sorted. In Unguarded
	// and Dodges, "cost" stands for the members of the cost.
	Fields []string
	// ExceptsResource says that a condition in CEL or Rego can be true because a comparison with
	// the resource is false.
	ExceptsResource bool
	// Unguarded has the metadata keys, and the cost, that a condition in CEL reads and never tests
	// for existence, sorted.
	Unguarded []string
	// Dodges has the metadata keys, and the cost, by whose absence an intent can make a condition
	// in another form false, sorted. It leaves out keys whose existence the condition tests.
	Dodges []string
	// CallerTime says that a part of the condition rests on issued_at alone: it compares issued_at
	// with a constant, or takes its hour or day. In Rego it says that the condition reads issued_at
	// and never decided_at.
	CallerTime bool
	// TextOrder is a text that looks like a number and by which a condition in CEL or Rego orders.
	// It is empty if the condition orders by no such text.
	TextOrder string
	// Echoes has the places of messages in Rego that could hold a value of the metadata. They are left
	// out of the reasons.
	Echoes []Mistake
	// Refused is the error of a condition in Rego that nobody can create, but that is asked if it is
	// stored, or nil. Such a condition orders a metadata value by a text that looks like a number,
	// or its time zone depends on the caller or on the machine.
	Refused error
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

// names is the set of names that a review collects.
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

// reviewed returns the name of f in a review.
func (f Field) reviewed() string {
	if f.ID == GovernedAgentID { // the same agent as the intent's
		return fields[AgentID].name
	}
	return f.Label()
}

// whole returns the name of the member without which f is absent. That is the metadata key, or the
// owner of the field.
func (f Field) whole() string {
	if f.isMetadata() {
		return f.Label()
	}
	return fields[f.row().owner].name
}

func reviewTree(tree *Node) Review {
	all, reads, asks := names{}, names{}, names{}
	callerTime := false
	var visit func(n *Node, negated bool)
	visit = func(n *Node, negated bool) {
		switch {
		case n.Kind != Leaf:
			for _, k := range n.Kids {
				visit(k, negated != (n.Kind == Not))
			}
			return
		case n.Field.Counter != nil: // an intent without a cost is not in a counter that sums costs
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
		callerTime = callerTime || n.Field.ID == IssuedAt && n.Op != Exists
	}
	visit(tree, false)
	return Review{Fields: all.without(nil), Dodges: reads.without(asks), CallerTime: callerTime}
}
