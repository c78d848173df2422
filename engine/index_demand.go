package engine

import "slices"

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
	case n.op == opEq || n.op == opIn:
		for _, v := range n.values {
			d.values = append(d.values, v.str)
		}
		return []demand{d}
	case !n.readsResource():
		return nil
	case n.op == opStartsWith:
		d.within = append(d.within, directory(n.values[0].str))
	case n.op == opResourceGlob:
		for _, v := range n.values {
			if !d.glob(v.str) {
				return nil
			}
		}
	}
	if len(d.values)+len(d.within) == 0 || slices.Contains(d.within, "") {
		return nil
	}
	return []demand{d}
}

// glob adds what each spelling of a resource's glob starts with.
func (d *demand) glob(pattern string) bool {
	globs, err := CompileGlobs([]string{pattern})
	if err != nil {
		return false
	}
	for _, spelling := range globs.programs {
		if spelling.star == "" {
			d.values = append(d.values, spelling.literal)
		} else {
			d.within = append(d.within, directory(spelling.literal))
		}
	}
	for _, a := range globs.automata {
		d.within = append(d.within, directory(a.prefix))
	}
	return true
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
