package condition

import "strings"

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
func (p *parser) tree(obj jsonNode) *Node {
	if !isTree(obj) {
		p.nodes++
		return p.wrong(obj.at, `want {"all":[...]}, {"any":[...]}, {"not":...} or {"field":...,"op":...,"value":...}, got %s; %s`,
			describeTree(obj), forms)
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

// treeLeaf parses {"field": …, "op": …, "value": …}.
func (p *parser) treeLeaf(obj jsonNode) *Node {
	found := map[string]jsonNode{}
	for _, m := range obj.members {
		role := leafRole(m.name)
		if _, twice := found[role]; twice {
			return p.wrong(m.value.at, "%q is there twice, under both its names", role)
		}
		if role == "" {
			return p.wrong(m.value.at, "%q does not go beside %q: a node is one of all, any, not or a leaf of field, op and value, and the forms cannot be mixed; %s",
				m.name, otherKey(obj, m.name), forms)
		}
		found[role] = m.value
	}
	for _, role := range []string{"field", "op", "value"} {
		if _, ok := found[role]; !ok {
			return p.wrong(obj.at, "the leaf has no %q: want {\"field\":...,\"op\":...,\"value\":...}", role)
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
func (p *parser) leafHead(name, op jsonNode) (Field, comparison, bool) {
	if name.kind != '"' || op.kind != '"' {
		wrong := name
		if name.kind == '"' {
			wrong = op
		}
		p.add(wrong.at, "want a string, got %s", wrong.describe())
		return Field{}, comparison{}, false
	}
	f, err := lookupField(name.text)
	if err != nil {
		p.add(name.at, "%v", err)
	}
	c, ok := named(op.text)
	if !ok || strings.HasPrefix(op.text, "$") {
		names := operatorNames(true)
		last := len(names) - 1
		p.add(op.at, "unknown operator %q: want one of %s or %s", op.text, strings.Join(names[:last], ", "), names[last])
		ok = false
	}
	return f, c, ok && err == nil
}
