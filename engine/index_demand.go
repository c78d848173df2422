package engine

import (
	"slices"

	"writ/engine/glob"
)

// demand is a necessary condition of a rule: the field has one of values, is
// absent where that is accepted, or, of the resource, starts with one of within.
type demand struct {
	field  field
	values []string
	within []string
	absent bool
}

// demandsOf returns what n demands, or what it demands to be false. Each of
// them holds of every intent of which n is true (false); what n says besides
// is left out.
func demandsOf(n *node, truth bool) []demand {
	switch {
	case n.kind == nodeNot:
		return demandsOf(n.kids[0], !truth)
	case n.kind == nodeLeaf && truth:
		return leafDemand(n)
	case n.kind == nodeLeaf:
		return absenceDemand(n)
	case n.kind == nodeOpaque || len(n.kids) == 0:
		return nil
	case (n.kind == nodeAll) == truth:
		var demands []demand
		for _, k := range n.kids {
			demands = append(demands, demandsOf(k, truth)...)
		}
		return demands
	}
	common := demandsOf(n.kids[0], truth)
	for _, k := range n.kids[1:] {
		if common = eitherDemand(common, demandsOf(k, truth)); len(common) == 0 {
			return nil
		}
	}
	return common
}

// eitherDemand returns what is demanded where a or b is.
func eitherDemand(a, b []demand) []demand {
	var both []demand
	for _, d := range a {
		i := slices.IndexFunc(b, func(e demand) bool { return e.field == d.field })
		if i < 0 {
			continue
		}
		both = append(both, demand{
			field:  d.field,
			values: slices.Concat(d.values, b[i].values),
			within: slices.Concat(d.within, b[i].within),
			absent: d.absent || b[i].absent,
		})
	}
	return both
}

// leafDemand returns what a true comparison demands.
func leafDemand(n *node) []demand {
	if n.field.kind != kindString {
		return nil
	}
	d := demand{field: n.field}
	switch {
	case n.isResource() && n.reads != readsOne && (n.op == opEq || n.op == opIn):
		if list, err := glob.Exactly(n.texts(), glob.Use(n.reads == readsAny)); err == nil {
			d.literals(list)
		}
	case n.op == opEq || n.op == opIn:
		for _, v := range n.values {
			d.values = append(d.values, v.str)
		}
		return []demand{d}
	case !n.isResource():
		return nil
	case n.op == opStartsWith:
		d.within = append(d.within, directory(n.values[0].str))
	case n.op == opResourceGlob:
		list, err := glob.Compile(n.texts(), glob.Blocks)
		if err != nil {
			return nil
		}
		d.literals(list)
	}
	if len(d.values)+len(d.within) == 0 || slices.Contains(d.within, "") {
		return nil
	}
	return []demand{d}
}

// literals adds what the patterns of list start with, as each reader has them.
func (d *demand) literals(list *glob.List) {
	for literal, whole := range list.Literals {
		if whole {
			d.values = append(d.values, literal)
		} else {
			d.within = append(d.within, directory(literal))
		}
	}
}

// texts returns the values of a leaf over a string.
func (n *node) texts() []string {
	texts := make([]string, len(n.values))
	for i, v := range n.values {
		texts[i] = v.str
	}
	return texts
}

// absenceDemand returns what a false comparison demands: that the field whose
// existence was asked is absent. The cost and its currency are absent together.
func absenceDemand(n *node) []demand {
	switch {
	case n.op != opExists || n.field.kind == kindDigits:
		return nil
	case n.field.keyed:
		return []demand{{field: n.field, absent: true}}
	case n.field.inCost():
		currency, _ := fieldByPath("intent.cost.currency")
		return []demand{{field: currency, absent: true}}
	}
	return nil
}
