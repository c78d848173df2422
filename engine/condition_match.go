package engine

import "strings"

// conditionParser parses forms 1 and 2. It reports every mistake that it finds
// and stands opaque nodes in for what it could not parse.
type conditionParser struct {
	conditionError
	nodes    int
	patterns budget
	// stored says that the rule was accepted once: see [Options].
	stored bool
}

// parseCondition returns the tree of a condition in form 1 or 2, and what its
// patterns come to.
func parseCondition(root jsonNode, stored bool) (*node, budget, error) {
	p := conditionParser{stored: stored}
	parse := p.match
	if isTree(root) {
		parse = p.tree
	}
	tree := parse(root)
	if p.nodes > maxConditionNodes {
		return nil, budget{}, badCondition("has %d comparisons and combinations, at most %d are allowed", p.nodes, maxConditionNodes)
	}
	return tree, p.patterns, p.err()
}

// match parses a match object.
func (p *conditionParser) match(obj jsonNode) *node {
	p.nodes++
	if obj.kind != '{' {
		p.add(obj.at, "want a match object such as {\"action_type\":\"deploy\"}, got %s", obj.describe())
		return opaque()
	}
	kids := make([]*node, 0, len(obj.members))
	for _, m := range obj.members {
		kids = append(kids, p.member(m))
	}
	return all(kids...)
}

func (p *conditionParser) member(m jsonMember) *node {
	switch m.name {
	case "$and":
		return all(p.list(m.value, p.match)...)
	case "$or":
		return anyOf(p.list(m.value, p.match)...)
	case "$nor":
		return not(anyOf(p.list(m.value, p.match)...))
	case "$not":
		return not(p.match(m.value))
	}
	if isTreeKey(m.name) || m.name == "cel" || m.name == "rego" {
		p.add(m.value.at, "%q does not go into a match object: the forms cannot be mixed; %s", m.name, forms)
		return opaque()
	}
	if strings.HasPrefix(m.name, "$") {
		p.add(m.value.at, "unknown operator %q before a field: want $and, $or, $nor or $not", m.name)
		return opaque()
	}
	f, err := lookupField(m.name)
	if err != nil {
		p.add(m.value.at, "%v; %s", err, forms)
		return opaque()
	}
	return p.expect(f, m.value)
}

// list parses the operands of a combination, of which there is at least one.
func (p *conditionParser) list(v jsonNode, parse func(jsonNode) *node) []*node {
	p.nodes++
	if v.kind != '[' || len(v.items) == 0 {
		p.add(v.at, "want an array of at least one condition")
		return []*node{opaque()}
	}
	kids := make([]*node, len(v.items))
	for i, item := range v.items {
		kids[i] = parse(item)
	}
	return kids
}

// expect parses what a match object says about one field.
func (p *conditionParser) expect(f field, v jsonNode) *node {
	switch v.kind {
	case '{':
		return p.operators(f, v)
	case '[':
		p.add(v.at, `want a value or {"$in": [...]}, got an array`)
		return opaque()
	case '"':
		if f.kind == kindString && strings.Contains(v.text, "*") {
			return p.leaf(f, comparison{name: "$glob", op: opGlob}, v)
		}
	}
	return p.leaf(f, comparison{name: "equality", op: opEq}, v)
}

func (p *conditionParser) operators(f field, obj jsonNode) *node {
	if len(obj.members) == 0 {
		p.add(obj.at, `want at least one operator such as {"$gt": 5000}`)
		return opaque()
	}
	kids := make([]*node, 0, len(obj.members))
	for _, m := range obj.members {
		kids = append(kids, p.operator(f, m))
	}
	return all(kids...)
}

func (p *conditionParser) operator(f field, m jsonMember) *node {
	if m.name == "$not" {
		p.nodes++
		if m.value.kind != '{' {
			p.add(m.value.at, `want operators such as {"$gt": 5000}, got %s`, m.value.describe())
			return opaque()
		}
		return not(p.operators(f, m.value))
	}
	c, ok := matchOperators()[m.name]
	if !ok {
		p.add(m.value.at, "unknown operator %q: want one of $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists, $glob, $regex, $every, $some, $size or $not", m.name)
		return opaque()
	}
	c.name = m.name
	return p.leaf(f, c, m.value)
}

// matchOperators are the operators of form 1 by name.
func matchOperators() map[string]comparison {
	return map[string]comparison{
		"$eq":     {op: opEq},
		"$ne":     {op: opEq, negated: true},
		"$gt":     {op: opGt},
		"$gte":    {op: opGte},
		"$lt":     {op: opLt},
		"$lte":    {op: opLte},
		"$in":     {op: opIn},
		"$nin":    {op: opIn, negated: true},
		"$exists": {op: opExists},
		"$glob":   {op: opGlob},
		"$regex":  {op: opRegex},
		"$every":  {op: opEach},
		"$some":   {op: opSome},
		"$size":   {op: opSize},
	}
}
