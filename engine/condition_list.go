package engine

// quantifier parses what $every and $some ask of the items of a metadata value:
// to be one of a list, or to satisfy operators.
func (p *conditionParser) quantifier(f field, c comparison, v jsonNode) *node {
	if !p.isList(f, c, v) {
		return opaque()
	}
	var of *node
	switch v.kind {
	case '[':
		of = p.membership(item(), c, v)
	case '{':
		of = p.operators(item(), v)
	default:
		p.add(v.at, `%s wants an array of constants, or operators such as {"$glob": "*@example.com"}, got %s`, c.name, v.describe())
		return opaque()
	}
	if c.op == opSome {
		return quantified(f, opSome, of)
	}
	return all(compare(f.as(kindSize), opGt, constant{}), quantified(f, opEach, of))
}

// size parses what $size asks of the number of items: an integer, or operators.
func (p *conditionParser) size(f field, c comparison, v jsonNode) *node {
	switch {
	case !p.isList(f, c, v):
		return opaque()
	case v.kind == '0':
		return p.leaf(f.as(kindSize), comparison{name: c.name, op: opEq}, v)
	case v.kind == '{':
		return p.operators(f.as(kindSize), v)
	}
	p.add(v.at, `%s wants an integer, or operators such as {"$lte": 3}, got %s`, c.name, v.describe())
	return opaque()
}

// isList reports whether f can be looked at as a list: a metadata value can.
func (p *conditionParser) isList(f field, c comparison, v jsonNode) bool {
	if !f.keyed || f.kind != kindString {
		p.add(v.at, "%s looks at a metadata value as a list, %s is none", c.name, f.label())
		return false
	}
	return true
}
