package condition

import "slices"

// Names are the names of the agent that an intent names. A comparison with the agent whose truth
// makes the outcome stricter holds if it holds for one of them.
type Names struct {
	// texts has the names and then their folded forms. No text occurs twice.
	texts          [6]string
	called, listed int
}

// NamesOf returns the names of an agent. sent is the name in the intent. id and externalID are the
// agent's registered names, or empty.
func NamesOf(sent, id, externalID string) Names {
	var n Names
	for _, name := range [...]string{sent, id, externalID} {
		if n.called == 0 || name != "" {
			n.called = n.add(n.called, name)
		}
	}
	return n
}

func (n *Names) add(count int, name string) int {
	if slices.Contains(n.texts[:count], name) {
		return count
	}
	n.texts[count] = name
	return count + 1
}

// Called returns the names as they were sent and registered. The first name is the sent name. The
// slice must not be modified.
func (n *Names) Called() []string { return n.texts[:n.called] }

// Forms returns the names and their folded forms. The slice must not be modified.
func (n *Names) Forms() []string {
	if n.listed == 0 {
		n.listed = n.called
		for _, name := range n.texts[:n.called] {
			n.listed = n.add(n.listed, FoldID(name))
		}
	}
	return n.texts[:n.listed]
}

// AsksNames reports whether n compares every name of the agent. It is a leaf with one kid, the
// comparison of an [Item] that is one of [Names.Forms].
func (n *Node) AsksNames() bool { return n.Kind == Leaf && n.Field.ID == AgentNames }

// comparesAgent reports whether n compares the text of the agent's name.
func (n *Node) comparesAgent() bool {
	return n.Kind == Leaf && (n.Field.ID == AgentID || n.Field.ID == GovernedAgentID) && n.Field.Kind == Text &&
		n.Op != Exists && len(n.Kids) == 0
}

// ofNames returns a leaf that is true if n is true for one of the agent's names. The constants are
// folded as the names are.
func (n *Node) ofNames() *Node {
	name, first := FieldOf(Item), ""
	if len(n.Values) > 0 {
		first = n.Values[0].Str
	}
	var of *Node
	switch n.Op {
	case Eq, In:
		of = among(name, foldedNames(n.Texts()))
	case InList:
		of = Compare(name, InNames, n.Values...)
	case Glob:
		of = Compare(name, Glob, append(n.Values[:len(n.Values):len(n.Values)], foldedPatterns(n.Texts())...)...)
	case Regex: // a class that leaves out small letters matches less if it ignores case
		of = Either(Compare(name, Regex, n.Values...), Compare(name, Regex, Constant{Str: "(?i)" + first}))
	default:
		of = Compare(name, n.Op, n.Values...)
		if folded := FoldID(first); folded != first {
			of = Either(of, Compare(name, n.Op, Constant{Str: folded}))
		}
	}
	return quantified(FieldOf(AgentNames), Some, of)
}

func foldedNames(texts []string) (folded []Constant) {
	for _, s := range texts {
		if c := (Constant{Str: FoldID(s)}); !slices.Contains(folded, c) {
			folded = append(folded, c)
		}
	}
	return folded
}

// foldedPatterns returns the folded forms of globs that differ from the globs. Some globs have none:
// the class [Z-a] would be empty.
func foldedPatterns(patterns []string) (folded []Constant) {
	for _, c := range foldedNames(patterns) {
		if _, err := compileMatcher(Glob, []string{c.Str}, 0); err == nil && !slices.Contains(patterns, c.Str) {
			folded = append(folded, c)
		}
	}
	return folded
}

// asked returns n, a part of a CEL condition that is evaluated for each name of the agent. The
// comparisons with the agent become comparisons with that name.
func (n *Node) asked() *Node {
	switch {
	case n.comparesAgent():
		leaf := *n
		leaf.Field = FieldOf(AgentName)
		return &leaf
	case n.Kind == Not:
		return Negate(n.Kids[0].asked())
	case n.Kind == Leaf || len(n.Kids) == 0:
		return n
	}
	return combine(n.Kind, each(n.Kids, (*Node).asked))
}

// byName is a comparison with every name of the agent.
type byName struct{ of predicate }

func (n *byName) ask(f *Frame) result {
	t := tally{decides: true}
	for _, name := range f.Names().Forms() {
		if t.add(f.asks(n.of, name)) {
			break
		}
	}
	return t.result()
}
