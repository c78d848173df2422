package engine

// treeKeys are the keys of a tree and of its leaves.
func treeKeys() []string {
	return []string{"all", "any", "not", "field", "fact", "op", "operator", "value"}
}

func isTreeKey(name string) bool {
	for _, key := range treeKeys() {
		if key == name {
			return true
		}
	}
	return false
}

// isTree reports whether the document's author meant form 2.
func isTree(root jsonNode) bool {
	for _, m := range root.members {
		if isTreeKey(m.name) {
			return true
		}
	}
	return false
}

// tree parses a node of form 2.
func (p *conditionParser) tree(obj jsonNode) *node {
	if !isTree(obj) {
		p.nodes++
		p.add(obj.at, `want {"all":[...]}, {"any":[...]}, {"not":...} or {"field":...,"op":...,"value":...}, got %s; %s`,
			describeTree(obj), forms)
		return opaque()
	}
	if len(obj.members) > 1 {
		return p.treeLeaf(obj)
	}
	switch m := obj.members[0]; m.name {
	case "all":
		return all(p.list(m.value, p.tree)...)
	case "any":
		return anyOf(p.list(m.value, p.tree)...)
	case "not":
		p.nodes++
		return not(p.tree(m.value))
	}
	return p.treeLeaf(obj)
}

func describeTree(n jsonNode) string {
	if n.kind != '{' {
		return n.describe()
	}
	if len(n.members) == 0 {
		return "an empty object"
	}
	return "an object with the key \"" + n.members[0].name + "\""
}

// treeLeaf parses {"field": …, "op": …, "value": …}.
func (p *conditionParser) treeLeaf(obj jsonNode) *node {
	found := map[string]jsonNode{}
	for _, m := range obj.members {
		role := leafRole(m.name)
		if _, twice := found[role]; twice {
			p.add(m.value.at, "%q is there twice, under both its names", role)
			return opaque()
		}
		if role == "" {
			p.add(m.value.at, "%q does not go beside %q: a node is one of all, any, not or a leaf of field, op and value, and the forms cannot be mixed; %s",
				m.name, otherKey(obj, m.name), forms)
			return opaque()
		}
		found[role] = m.value
	}
	for _, role := range []string{"field", "op", "value"} {
		if _, ok := found[role]; !ok {
			p.add(obj.at, "the leaf has no %q: want {\"field\":...,\"op\":...,\"value\":...}", role)
			return opaque()
		}
	}
	f, c, ok := p.leafHead(found["field"], found["op"])
	if !ok {
		return opaque()
	}
	return p.leaf(f, c, found["value"])
}

// leafRole returns what the key of a leaf says, or "" where it is none.
func leafRole(key string) string {
	switch key {
	case "field", "fact":
		return "field"
	case "op", "operator":
		return "op"
	case "value":
		return "value"
	}
	return ""
}

// otherKey returns the first key of obj that is not name.
func otherKey(obj jsonNode, name string) string {
	if obj.members[0].name != name {
		return obj.members[0].name
	}
	return obj.members[1].name
}

// leafHead parses a leaf's field and operator.
func (p *conditionParser) leafHead(name, op jsonNode) (field, comparison, bool) {
	if name.kind != '"' || op.kind != '"' {
		wrong := name
		if name.kind == '"' {
			wrong = op
		}
		p.add(wrong.at, "want a string, got %s", wrong.describe())
		return field{}, comparison{}, false
	}
	f, err := lookupField(name.text)
	if err != nil {
		p.add(name.at, "%v", err)
	}
	c, ok := treeOperators()[op.text]
	if !ok {
		p.add(op.at, "unknown operator %q: want one of eq, ne, gt, gte, lt, lte, in, nin, exists, glob, regex, every, some, size, contains, doesNotContain, startsWith or endsWith", op.text)
	}
	c.name = op.text
	return f, c, ok && err == nil
}

// treeOperators are the operators of form 2 by name: ours and those of
// json-rules-engine.
func treeOperators() map[string]comparison {
	return map[string]comparison{
		"eq": {op: opEq}, "equal": {op: opEq},
		"ne": {op: opEq, negated: true}, "notEqual": {op: opEq, negated: true},
		"gt": {op: opGt}, "greaterThan": {op: opGt},
		"gte": {op: opGte}, "greaterThanInclusive": {op: opGte},
		"lt": {op: opLt}, "lessThan": {op: opLt},
		"lte": {op: opLte}, "lessThanInclusive": {op: opLte},
		"in":  {op: opIn},
		"nin": {op: opIn, negated: true}, "notIn": {op: opIn, negated: true},
		"exists":         {op: opExists},
		"glob":           {op: opGlob},
		"regex":          {op: opRegex},
		"every":          {op: opEach},
		"some":           {op: opSome},
		"size":           {op: opSize},
		"contains":       {op: opContains},
		"doesNotContain": {op: opContains, negated: true},
		"startsWith":     {op: opStartsWith},
		"endsWith":       {op: opEndsWith},
	}
}
