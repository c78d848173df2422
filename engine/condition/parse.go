package condition

import (
	"fmt"
	"slices"
	"strings"
)

// parser parses match objects and trees. It reports every mistake, and replaces each mistaken part
// by an opaque node.
type parser struct {
	Error
	nodes    int
	patterns budget
	// stored says that the rule was accepted before: see [Options].
	stored bool
}

// parse returns the tree of a match object or a tree, and the sizes of its patterns.
func parse(root jsonNode, stored bool) (*Node, budget, error) {
	p := parser{stored: stored}
	form := p.match
	if isTree(root) {
		form = p.tree
	}
	tree := form(root)
	if p.nodes > MaxEntries {
		return nil, budget{},
			refuse("", "has %d comparisons and combinations, at most %d are allowed", p.nodes, MaxEntries)
	}
	if len(p.Mistakes) > 0 {
		return nil, budget{}, &p.Error
	}
	return tree, p.patterns, nil
}

// wrong reports a mistake and returns an opaque node.
func (p *parser) wrong(at, format string, args ...any) *Node {
	p.add(at, format, args...)
	return opaque()
}

// misnamed reports a mistake in the name of the value at the JSON pointer at. It returns an opaque
// node.
func (p *parser) misnamed(at, format string, args ...any) *Node {
	p.Add(Mistake{At: at, Key: true, Message: fmt.Sprintf(format, args...)})
	return opaque()
}

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
		return p.misnamed(m.value.at, "%q does not go into a match object: the forms cannot be mixed; %s", m.name,
			forms)
	}
	if strings.HasPrefix(m.name, "$") {
		return p.misnamed(m.value.at, "unknown operator %q before a field: want $and, $or, $nor or $not", m.name)
	}
	f, err := lookupField(m.name)
	if err != nil {
		return p.unknownKey(m, err)
	}
	switch {
	case f.ID == Metadata && m.value.kind == '{' && !p.hasOperators(m.value):
		return p.misnamed(m.value.at, "a metadata key is written with its path: %s", flattened(m))
	case f.ID == Cost && m.value.kind == '{' && !p.hasOperators(m.value):
		return p.misnamed(m.value.at, "a member of the cost is written with its path: %s", flattened(m))
	}
	return p.expect(f, m.value)
}

// list parses the operands of a combination, at least one.
func (p *parser) list(v jsonNode, parse func(jsonNode) *Node) []*Node {
	p.nodes++
	if v.kind != '[' || len(v.items) == 0 {
		return []*Node{p.wrong(v.at, "want an array of at least one condition, got %s", v.describe())}
	}
	kids := make([]*Node, len(v.items))
	for i, item := range v.items {
		kids[i] = parse(item)
	}
	return kids
}

// expect parses the value of a field in a match object.
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
		return p.misnamed(m.value.at, "%s", unknownOperator(m.name, false))
	}
	return p.leaf(f, c, m.value)
}

func treeKeys() []string {
	return []string{"all", "any", "not", "field", "fact", "op", "operator", "value", "count", "sum"}
}

func isTreeKey(name string) bool {
	return slices.Contains(treeKeys(), name)
}

// isTree reports whether the document's author meant a tree.
func isTree(root jsonNode) bool {
	return slices.ContainsFunc(root.members, func(m jsonMember) bool { return isTreeKey(m.name) })
}

// tree parses a node of the form tree.
func (p *parser) tree(obj jsonNode) *Node {
	if !isTree(obj) {
		p.nodes++
		for _, m := range obj.members {
			if meant := Meant(m.name, treeKeys()); meant != "" {
				return p.misnamed(m.value.at, "unknown key %q: %s%q?", m.name, didYouMean, meant)
			}
			if m.name == "cel" || m.name == "rego" {
				return p.misnamed(m.value.at, "%q stands alone, not under a tree: write the whole condition in it",
					m.name)
			}
		}
		return p.wrong(obj.at,
			`want {"all":[...]}, {"any":[...]}, {"not":...} or {"field":...,"op":...,"value":...}, got %s; %s`,
			describeTree(obj), forms)
	}
	if slices.ContainsFunc(obj.members, func(m jsonMember) bool { return isCounterKey(m.name) }) {
		return p.counterLeaf(obj)
	}
	if len(obj.members) > 1 {
		return p.treeLeaf(obj)
	}
	switch m := obj.members[0]; m.name {
	case "all":
		return Both(p.list(m.value, p.tree)...)
	case "any":
		return Either(p.list(m.value, p.tree)...)
	case "not":
		p.nodes++
		return Negate(p.tree(m.value))
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

// leafRoles has the role of each key that a leaf can have.
var leafRoles = map[string]string{"field": "field", "fact": "field", "op": "op", "operator": "op", "value": "value"}

// treeLeaf parses {"field": …, "op": …, "value": …}.
func (p *parser) treeLeaf(obj jsonNode) *Node {
	found := map[string]jsonNode{}
	for i, m := range obj.members {
		role := leafRoles[m.name]
		if _, twice := found[role]; twice {
			return p.wrong(m.value.at, "%q is there twice, under both its names", role)
		}
		if meant := Meant(m.name, treeKeys()); role == "" && meant != "" && !isTreeKey(m.name) {
			return p.misnamed(m.value.at, "unknown key %q: %s%q?", m.name, didYouMean, meant)
		}
		if role == "" {
			beside := obj.members[0].name
			if i == 0 {
				beside = obj.members[1].name
			}
			return p.misnamed(m.value.at,
				"%q does not go beside %q: a node is one of all, any, not or a leaf of field, op and value, and the "+
					"forms cannot be mixed; %s",
				m.name, beside, forms)
		}
		found[role] = m.value
	}
	for _, role := range []string{"field", "op", "value"} {
		if _, ok := found[role]; !ok {
			return p.wrong(obj.at, "the leaf has no %q: want {\"field\":...,\"op\":...,\"value\":...}", role)
		}
	}
	name, op := found["field"], found["op"]
	for _, v := range []jsonNode{name, op} {
		if v.kind != '"' {
			return p.wrong(v.at, "want a string, got %s", v.describe())
		}
	}
	f, err := lookupField(name.text)
	if err != nil {
		p.add(name.at, "%v", err)
	}
	c, ok := named(op.text)
	switch {
	case !ok || strings.HasPrefix(op.text, "$"):
		return p.wrong(op.at, "%s", unknownOperator(op.text, true))
	case err != nil:
		return opaque()
	}
	return p.leaf(f, c, found["value"])
}

func (p *parser) hasOperators(obj jsonNode) bool {
	named := func(m jsonMember) bool { return strings.HasPrefix(m.name, "$") }
	return len(obj.members) == 0 || slices.ContainsFunc(obj.members, named)
}
