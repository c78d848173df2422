package proof

import (
	"slices"
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// shapeKey identifies a pattern or an exact text of a list.
type shapeKey struct {
	op   condition.Operator
	side resource.Side
	text string
}

// shape is a pattern with the literal beginnings of its spellings.
type shape struct {
	glob.Shape
	prefixes []string
}

// implies reports whether b is true in every intent in which a is true. a and b are leaves of the
// same field.
func (p *Prover) implies(a, b *condition.Node) bool {
	switch {
	case a.Field.Kind != b.Field.Kind:
		return false
	case equal(a, b):
		return true
	case a.AsksNames() && b.AsksNames(): // the name of which a is true
		a, b = a.Kids[0], b.Kids[0]
		return a.Kind == condition.Leaf && b.Kind == condition.Leaf && p.implies(a, b)
	case a.Field.Kind != condition.Text || a.Field.ID == condition.Resource && !readsAlike(a, b),
		a.IsRead() || b.IsRead():
		return false
	}
	switch {
	case isEquality(a.Op) && isEquality(b.Op) &&
		(a.Field.ID != condition.Resource || a.Side == 0 || a.Side == b.Side):
		return !slices.ContainsFunc(a.Values, func(v condition.Constant) bool { return !slices.Contains(b.Values, v) })
	case isMatch(a) && isMatch(b):
		return !slices.ContainsFunc(a.Texts(), func(s string) bool { return !p.covered(a, s, b) })
	case a.Op == condition.StartsWith && b.Op == condition.StartsWith:
		return strings.HasPrefix(a.Values[0].Str, b.Values[0].Str)
	case a.Op == condition.EndsWith && b.Op == condition.EndsWith:
		return strings.HasSuffix(a.Values[0].Str, b.Values[0].Str)
	case b.Op == condition.Contains &&
		(a.Op == condition.StartsWith || a.Op == condition.EndsWith || a.Op == condition.Contains):
		return strings.Contains(a.Values[0].Str, b.Values[0].Str)
	}
	return false
}

func isEquality(op condition.Operator) bool { return op == condition.Eq || op == condition.In }

// readsAlike reports whether the readings that a compares are among those that b compares. A block
// looks at all readings of an allowance. So a match for an allowance is also a match for a block.
func readsAlike(a, b *condition.Node) bool {
	return a.Side == b.Side || a.Side == resource.ForAllow && b.Side == resource.ForBlock
}

// isMatch reports whether a leaf compares by patterns. A constant of the resource counts as a
// pattern, because it equals every text with the same readings.
func isMatch(n *condition.Node) bool {
	return n.Op.IsGlob() && n.Op != condition.ActionDenied ||
		n.Field.ID == condition.Resource && n.Side != 0 && isEquality(n.Op)
}

// covered reports whether b matches every text that the pattern s matches. s is a pattern of a.
func (p *Prover) covered(a *condition.Node, s string, b *condition.Node) bool {
	return slices.ContainsFunc(b.Texts(), func(by string) bool {
		switch {
		case a.Op == condition.ActionGlob:
			return b.Op == condition.ActionGlob && ActionCovers(by, s)
		case a.Op == condition.Glob || b.Op == condition.Glob:
			return a.Op == b.Op && p.shape(b.Op, by, 0).covers(p.shape(a.Op, s, 0))
		case a.Side == resource.ForAllow && b.Side == resource.ForBlock:
			beats, of := p.shape(b.Op, by, resource.ForBlock), p.shape(a.Op, s, resource.ForAllow)
			return beats.mayCover(of) && beats.Beats(of.Shape)
		}
		for _, side := range sides(a) {
			if !p.shape(b.Op, by, side).covers(p.shape(a.Op, s, side)) {
				return false
			}
		}
		return true
	})
}

// sides returns the possible sides of a leaf's list.
func sides(n *condition.Node) []resource.Side {
	if n.Side != 0 {
		return []resource.Side{n.Side}
	}
	return []resource.Side{resource.ForBlock, resource.ForAllow}
}

func (p *Prover) shape(op condition.Operator, text string, side resource.Side) shape {
	key := shapeKey{op, side, text}
	s, ok := p.shapes[key]
	if ok {
		return s
	}
	switch op {
	case condition.ActionGlob: // action types have no side: ActionCovers compares them
		before, _, _ := strings.Cut(text, "*")
		s.prefixes = []string{before}
	case condition.Glob:
		s.Shape = glob.PlainShape(text)
	case condition.ResourceGlob:
		s.Shape = glob.ShapeOf(text, side)
	default:
		s.Shape = glob.ExactShape(text, side)
	}
	s.prefixes = slices.AppendSeq(s.prefixes, s.Prefixes)
	p.shapes[key] = s
	return s
}

func (s shape) covers(t shape) bool { return s.mayCover(t) && s.Covers(t.Shape) }

// mayCover reports whether a prefix of s begins the first prefix of t. If none does, s cannot cover
// t.
func (s shape) mayCover(t shape) bool {
	return len(t.prefixes) > 0 &&
		slices.ContainsFunc(s.prefixes, func(prefix string) bool { return strings.HasPrefix(t.prefixes[0], prefix) })
}

func equal(n, m *condition.Node) bool {
	return n == m || n.Kind == m.Kind && n.Kind != condition.Opaque && n.Field == m.Field && n.Op == m.Op &&
		n.Side == m.Side && slices.Equal(n.Values, m.Values) && slices.EqualFunc(n.Kids, m.Kids, equal)
}
