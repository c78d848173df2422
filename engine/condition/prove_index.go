package condition

import (
	"iter"
	"slices"
)

// What is here says which conditions may cover a case without asking them: see
// [Case.Decide].

// Values returns the texts of which f has one, nil where any is possible.
func (c *Case) Values(f Field) []string {
	if k := c.known[f.subject()]; k != nil && k.finite {
		return k.values
	}
	return nil
}

// Starts returns what patterns start with of which one matches f in all intents of the
// case, nil where there is no such list.
func (c *Case) Starts(f Field) []string {
	k := c.known[f.subject()]
	if k == nil {
		return nil
	}
	for _, l := range k.literals {
		var starts []string
		for _, text := range l.leaf.Texts() {
			if !l.truth || !isMatch(l.leaf) {
				break
			}
			for _, side := range sides(l.leaf) {
				starts = append(starts, c.prover.shape(l.leaf.Op, text, side).prefixes...)
			}
		}
		if len(starts) > 0 {
			return starts
		}
	}
	return nil
}

// Fields yields the fields about which something is known.
func (c *Case) Fields(yield func(f Field) bool) {
	for s := range c.known {
		if !yield(Field{ID: s.id, Key: s.key}) {
			return
		}
	}
}

// Covered yields texts. A list of patterns that is proved to match f in all intents of
// the case has a pattern that starts with a part, or all, of one of them.
func (c *Case) Covered(f Field, yield func(text string) bool) {
	k := c.known[f.subject()]
	if k == nil {
		return
	}
	if k.finite && !yield(k.values[0]) {
		return
	}
	for _, l := range k.literals {
		if !l.truth || !isMatch(l.leaf) {
			continue
		}
		for _, side := range sides(l.leaf) {
			if s := c.prover.shape(l.leaf.Op, l.leaf.Values[0].Str, side); len(s.prefixes) > 0 &&
				!yield(s.prefixes[0]) {
				return
			}
		}
	}
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
