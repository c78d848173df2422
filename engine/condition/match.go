package condition

import "strings"

// parser parses match objects and trees. It reports every mistake that it finds and
// stands opaque nodes in for what it could not parse.
type parser struct {
	Error
	nodes    int
	patterns budget
	// stored says that the rule was accepted once: see [Options].
	stored bool
}

// parse returns the tree of a match object or a tree, and what its patterns come to.
func parse(root jsonNode, stored bool) (*Node, budget, error) {
	p := parser{stored: stored}
	form := p.match
	if isTree(root) {
		form = p.tree
	}
	tree := form(root)
	if p.nodes > maxNodes {
		return nil, budget{}, refuse("", "has %d comparisons and combinations, at most %d are allowed", p.nodes, maxNodes)
	}
	if len(p.Mistakes) > 0 {
		return nil, budget{}, &p.Error
	}
	return tree, p.patterns, nil
}

// wrong reports a mistake and returns what stands in for what is wrong.
func (p *parser) wrong(at, format string, args ...any) *Node {
	p.add(at, format, args...)
	return opaque()
}

// match parses a match object.
func (p *parser) match(obj jsonNode) *Node {
	p.nodes++
	if obj.kind != '{' {
		return p.wrong(obj.at, "want a match object such as {\"action_type\":\"deploy\"}, got %s", obj.describe())
	}
	kids := make([]*Node, 0, len(obj.members))
	for _, m := range obj.members {
		kids = append(kids, p.member(m))
	}
	return Both(kids...)
}

func (p *parser) member(m jsonMember) *Node {
	switch m.name {
	case "$and":
		return Both(p.list(m.value, p.match)...)
	case "$or":
		return Either(p.list(m.value, p.match)...)
	case "$nor":
		return Negate(Either(p.list(m.value, p.match)...))
	case "$not":
		return Negate(p.match(m.value))
	}
	if isTreeKey(m.name) || m.name == "cel" || m.name == "rego" {
		return p.wrong(m.value.at, "%q does not go into a match object: the forms cannot be mixed; %s", m.name, forms)
	}
	if strings.HasPrefix(m.name, "$") {
		return p.wrong(m.value.at, "unknown operator %q before a field: want $and, $or, $nor or $not", m.name)
	}
	f, err := lookupField(m.name)
	if err != nil {
		return p.wrong(m.value.at, "%v; %s", err, forms)
	}
	return p.expect(f, m.value)
}

// list parses the operands of a combination, of which there is at least one.
func (p *parser) list(v jsonNode, parse func(jsonNode) *Node) []*Node {
	p.nodes++
	if v.kind != '[' || len(v.items) == 0 {
		return []*Node{p.wrong(v.at, "want an array of at least one condition")}
	}
	kids := make([]*Node, len(v.items))
	for i, item := range v.items {
		kids[i] = parse(item)
	}
	return kids
}

// expect parses what a match object says about one field.
func (p *parser) expect(f Field, v jsonNode) *Node {
	switch v.kind {
	case '{':
		return p.operators(f, v)
	case '[':
		return p.wrong(v.at, `want a value or {"$in": [...]}, got an array`)
	case '"':
		if f.Kind == Text && strings.Contains(v.text, "*") {
			return p.leaf(f, comparison{name: "$glob", op: Glob}, v)
		}
	}
	return p.leaf(f, comparison{name: "equality", op: Eq}, v)
}

func (p *parser) operators(f Field, obj jsonNode) *Node {
	if len(obj.members) == 0 {
		return p.wrong(obj.at, `want at least one operator such as {"$gt": 5000}`)
	}
	kids := make([]*Node, 0, len(obj.members))
	for _, m := range obj.members {
		kids = append(kids, p.operator(f, m))
	}
	return Both(kids...)
}

func (p *parser) operator(f Field, m jsonMember) *Node {
	if m.name == "$not" {
		p.nodes++
		if m.value.kind != '{' {
			return p.wrong(m.value.at, `want operators such as {"$gt": 5000}, got %s`, m.value.describe())
		}
		return Negate(p.operators(f, m.value))
	}
	c, ok := named(m.name)
	if !ok || !strings.HasPrefix(m.name, "$") {
		return p.wrong(m.value.at, "unknown operator %q: want one of %s or $not", m.name, strings.Join(operatorNames(false), ", "))
	}
	return p.leaf(f, c, m.value)
}
