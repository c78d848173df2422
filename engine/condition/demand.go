package condition

import (
	"slices"
	"strings"

	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// Demand is a necessary condition of a rule. An intent meets the demand if the field has one of
// Values, or starts with one of Prefixes. If Absent is set, an intent without the field meets it
// too. A resource that starts with one of Within also meets it. A demand without any of these is
// never met.
type Demand struct {
	Field    Field
	Values   []string
	Prefixes []string
	Within   []string
	Absent   bool
}

// IsMet reports whether a field with the text s meets d. The field must not be absent.
func (d *Demand) IsMet(s string) bool {
	starts := func(prefix string) bool { return strings.HasPrefix(s, prefix) }
	return slices.Contains(d.Values, s) || slices.ContainsFunc(d.Prefixes, starts) ||
		slices.ContainsFunc(d.Within, starts)
}

// Size returns the number of texts that a field is compared with.
func (d *Demand) Size() int { return len(d.Values) + len(d.Prefixes) + len(d.Within) }

// demandsOf returns the demands of n. Every intent for which n has the value truth meets all of
// them. demandsOf may miss some demands.
func demandsOf(n *Node, truth bool) []Demand {
	switch {
	case n.Kind == Not:
		return demandsOf(n.Kids[0], !truth)
	case n.Kind == Leaf && truth:
		return leafDemand(n)
	case n.Kind == Leaf:
		return absenceDemand(n)
	case n.Kind == Opaque || len(n.Kids) == 0:
		return nil
	case (n.Kind == All) == truth:
		var demands []Demand
		for _, k := range n.Kids {
			demands = append(demands, demandsOf(k, truth)...)
		}
		return demands
	}
	common := demandsOf(n.Kids[0], truth)
	for _, k := range n.Kids[1:] {
		if common = EitherDemand(common, demandsOf(k, truth)); len(common) == 0 {
			return nil
		}
	}
	return common
}

// EitherDemand returns demands. Every intent that meets all of a or all of b meets them.
func EitherDemand(a, b []Demand) []Demand {
	var both []Demand
	for _, d := range a {
		i := slices.IndexFunc(b, func(e Demand) bool { return e.Field == d.Field })
		if i < 0 {
			continue
		}
		both = append(both, Demand{
			Field:    d.Field,
			Values:   slices.Concat(d.Values, b[i].Values),
			Prefixes: slices.Concat(d.Prefixes, b[i].Prefixes),
			Within:   slices.Concat(d.Within, b[i].Within),
			Absent:   d.Absent || b[i].Absent,
		})
	}
	return both
}

// leafDemand returns the demands of a comparison that is true.
func leafDemand(n *Node) []Demand {
	if n.Field.Kind != Text || n.IsRead() {
		return nil
	}
	d := Demand{Field: n.Field}
	switch {
	case n.AsksNames():
		if of := n.Kids[0]; of.Kind == Leaf && (of.Op == Eq || of.Op == In) {
			d.Values = of.Texts()
		}
	case n.isResource() && n.Side != 0 && (n.Op == Eq || n.Op == In):
		if list, err := glob.Exactly(n.Texts(), n.Side); err == nil {
			d.literals(list)
		}
	case n.Op == Eq || n.Op == In:
		for _, v := range n.Values {
			d.Values = append(d.Values, v.Str)
		}
		return []Demand{d}
	case !n.isResource():
		return nil
	case n.Op == StartsWith:
		d.Within = append(d.Within, directory(n.Values[0].Str))
	case n.Op == ResourceGlob:
		list, err := glob.Compile(n.Texts(), resource.ForBlock)
		if err != nil {
			return nil
		}
		d.literals(list)
	}
	if len(d.Values)+len(d.Within) == 0 || slices.Contains(d.Within, "") {
		return nil
	}
	return []Demand{d}
}

// literals adds the literal prefixes of the patterns in list.
func (d *Demand) literals(list *glob.List) {
	for literal, whole := range list.Literals {
		if whole {
			d.Values = append(d.Values, literal)
		} else {
			d.Within = append(d.Within, directory(literal))
		}
	}
}

// absenceDemand returns the demands of a comparison that is false. For a false Exists, the field is
// absent. The cost and its currency are absent together.
func absenceDemand(n *Node) []Demand {
	switch {
	case n.Op != Exists || n.Field.Kind == Digits:
		return nil
	case n.Field.isMetadata():
		return []Demand{{Field: n.Field, Absent: true}}
	case n.Field.row().owner == Cost && n.Field.Optional():
		return []Demand{{Field: FieldOf(CostCurrency), Absent: true}}
	}
	return nil
}

// MaxDirectories is the number of slashes of a resource that an index uses. Each text of Within
// ends at one of these slashes.
const MaxDirectories = 6

// directory returns the part of prefix up to the last slash that the index uses. The part may be
// empty.
func directory(prefix string) string {
	end, slashes := 0, 0
	for i := 0; i < len(prefix) && slashes < MaxDirectories; i++ {
		if prefix[i] == '/' {
			slashes++
			end = i + 1
		}
	}
	return prefix[:end]
}
