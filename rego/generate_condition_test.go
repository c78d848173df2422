package rego

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// term is one comparison, written in each of the first three forms.
type term struct {
	field       string
	match, tree string // the names of the operator in forms 1 and 2
	value       any
	cel         string
}

func (g *generator) number() int64 { return amounts[g.r.IntN(len(amounts))] }

// term draws a comparison. cel has the same comparison, which is an error if the field is missing.
func (g *generator) term() term {
	switch g.r.IntN(11) {
	case 10:
		return g.inList()
	case 8:
		return g.decimal()
	case 9:
		return g.list()
	case 0:
		op := g.r.IntN(6)
		n := g.number()
		return term{field: "cost.amount_minor", match: []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"}[op],
			tree: []string{"equal", "notEqual", "greaterThan", "gte", "lt", "lessThanInclusive"}[op], value: n,
			cel: fmt.Sprintf("intent.cost.amount_minor %s %d", []string{"==", "!=", ">", ">=", "<", "<="}[op], n)}
	case 1:
		list := append(g.some(2, actionTypes), g.one(actionTypes...))
		return term{field: "action_type", match: "$in", tree: "in", value: list, cel: "intent.action_type in " + marshal(list)}
	case 2:
		pattern := g.one(resourceGlobs...)
		return term{field: "resource", match: "$glob", tree: "glob", value: pattern, cel: fmt.Sprintf("resource_glob(%s, intent.resource)", strconv.Quote(pattern))}
	case 3:
		pattern := g.one(actionGlobs...)
		return term{field: "intent.action_type", match: "$glob", tree: "glob", value: pattern, cel: fmt.Sprintf("action_matches(%s, intent.action_type)", strconv.Quote(pattern))}
	case 4:
		re := g.one("^prod/", "secrets", "[0-9]+$", "(?i)PROD", `\.`, "a.c", "^$")
		return term{field: "resource", match: "$regex", tree: "regex", value: re, cel: fmt.Sprintf("intent.resource.matches(%s)", strconv.Quote(re))}
	case 5:
		at := g.one(instants...)
		op := g.r.IntN(3)
		field, path := "issued_at", "intent.issued_at"
		if g.chance(50) {
			field, path = "decided_at", "decided_at"
		}
		return term{field: field, match: []string{"$eq", "$lt", "$gte"}[op], tree: []string{"eq", "lt", "gte"}[op], value: at,
			cel: fmt.Sprintf("%s %s timestamp(%q)", path, []string{"==", "<", ">="}[op], at)}
	case 6:
		return g.identity()
	}
	key, value := g.one(metadataKeys...), g.one(metadataValues...)
	op := g.r.IntN(3)
	return term{field: "metadata." + key, match: []string{"$eq", "$ne", "$gt"}[op], tree: []string{"eq", "ne", "gt"}[op], value: value,
		cel: fmt.Sprintf("intent.metadata[%q] %s %q", key, []string{"==", "!=", ">"}[op], value)}
}

// generatedLists returns the lists that generated conditions name.
func generatedLists() condition.Lists {
	return engine.CompileLists([]engine.List{
		{Name: "things", Values: []string{"deploy", "sql.read", "team-a/deployer", "prod", "EUR", "a@ours.example", "a", "BOT"}},
		{Name: "empty", Values: []string{}},
		jsonList("limits", `{"EUR": {"max": 4999}, "USD": {"max": 5000, "for": ["bot", "team-a"]}, "é": false, "list": [1, [true, "a"]]}`),
		jsonList("teams", `[{"name": "team-a", "members": ["bot", "team-a/deployer"]}, {"name": "team-b", "members": []}]`),
	})
}

// inList draws membership in a named list.
func (g *generator) inList() term {
	field := g.one("action_type", "agent_id", "cost.currency", "agent.status", "metadata.env", "metadata.list")
	name := g.one("things", "things", "empty")
	ref := "intent." + field
	if strings.HasPrefix(field, "agent.") {
		ref = field
	}
	op := g.r.IntN(2)
	cel := fmt.Sprintf("%s in list(%q)", ref, name)
	if op == 1 {
		cel = "!(" + cel + ")"
	}
	value := map[string]any{"list": name}
	if field == "metadata.list" {
		return term{field: field, match: []string{"$every", "$some"}[op], tree: []string{"every", "some"}[op], value: map[string]any{"$in": value}, cel: cel}
	}
	return term{field: field, match: []string{"$in", "$nin"}[op], tree: []string{"in", "notIn"}[op], value: value, cel: cel}
}

// decimal draws a comparison of a metadata value with a number.
func (g *generator) decimal() term {
	field := "metadata." + g.one("n", "n", "env", "in")
	if g.chance(20) {
		return term{field: field, match: "$in", tree: "in", value: []any{g.operand(), g.operand(), g.one(metadataValues...)}}
	}
	op := g.r.IntN(6)
	return term{field: field, match: []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"}[op],
		tree: []string{"equal", "notEqual", "greaterThan", "gte", "lt", "lessThanInclusive"}[op], value: g.operand()}
}

func (g *generator) operand() json.Number {
	return json.Number(g.one("5", "0", "-1", "5.0", "4.5", "0.10", "1000000000000000000", "9223372036854775807.5", "99999999999999999999999999999999"))
}

// list draws a comparison that reads a metadata value as a list.
func (g *generator) list() term {
	field := "metadata." + g.one("list", "list", "list", "n", "env")
	switch g.r.IntN(8) {
	case 0, 1:
		return term{field: field, match: "$size", tree: "size", value: g.sizes()}
	case 2:
		return g.whole()
	}
	match, tree := "$every", "every"
	if g.chance(50) {
		match, tree = "$some", "some"
	}
	if g.chance(40) {
		return term{field: field, match: match, tree: tree, value: append(g.some(3, items), g.one(items...))}
	}
	value := map[string]any{}
	for range 1 + g.r.IntN(2) {
		switch g.r.IntN(5) {
		case 0:
			value["$glob"] = []any{g.one("*@ours.example", "*@THEIRS.example", "*@{ours,ß}.example", "a*", "*", "**b**", "é*")}
		case 1:
			value["$not"] = map[string]any{"$in": append(g.some(2, items), g.one(items...))}
		case 2:
			value[g.one("$gt", "$lte", "$eq")] = g.operand()
		case 3:
			value["$regex"] = g.one("^a", "[0-9]", "@ours")
		default:
			value[g.one("$ne", "$gte", "$lt")] = strings.Trim(g.one(items...), "0123456789")
		}
	}
	return term{field: field, match: match, tree: tree, value: value}
}

// whole draws a comparison of a whole metadata value with addresses.
func (g *generator) whole() term {
	match, tree, _ := strings.Cut(g.one("$eq eq", "$ne ne", "$glob glob", "$in in", "$nin notIn"), " ")
	t := term{field: "metadata.list", match: match, tree: tree, value: g.one(items...)}
	switch match {
	case "$glob":
		t.value = []any{g.one("*@ours.example", "*@THEIRS.example", "*", "a*"), g.one("b", "*@ß.example")}
	case "$in", "$nin":
		t.value = append(g.some(2, items), g.one(items...))
	}
	return t
}

func (g *generator) sizes() any {
	if g.chance(50) {
		return g.r.IntN(4)
	}
	return map[string]any{g.one("$gt", "$lte", "$ne"): g.r.IntN(4)}
}

func (g *generator) identity() term {
	switch g.r.IntN(6) {
	case 4, 5:
		return g.agent()
	case 0:
		status := g.one("active", "disabled", "unregistered")
		return term{field: "agent.status", match: "$ne", tree: "ne", value: status, cel: fmt.Sprintf("agent.status != %q", status)}
	case 1:
		pattern := g.one(agentGlobs...)
		return term{field: "agent_id", match: "$glob", tree: "glob", value: pattern, cel: fmt.Sprintf("glob(%s, intent.agent_id)", strconv.Quote(pattern))}
	case 2:
		n := 1 + g.r.IntN(3)
		return term{field: "policy.version", match: "$gt", tree: "gt", value: n, cel: fmt.Sprintf("policy.version > %d", n)}
	}
	currency := g.one("EUR", "USD")
	return term{field: "cost.currency", match: "$eq", tree: "eq", value: currency, cel: fmt.Sprintf("intent.cost.currency == %q", currency)}
}

// agent draws a comparison of the agent.
func (g *generator) agent() term {
	t := term{field: "agent_id", value: g.one(agents...)}
	switch g.r.IntN(8) {
	case 0:
		t.match, t.tree = "$ne", "ne"
		t.cel = fmt.Sprintf("intent.agent_id != %q", t.value)
	case 1:
		list := append(g.some(2, agents), g.one(agents...))
		t.match, t.tree, t.value = "$in", "in", list
		t.cel = "intent.agent_id in " + marshal(list)
	case 2:
		re := g.one("^b", "[A-Z]", "OT$", "^[a-z-]+$", "(?s:team.a)")
		t.match, t.tree, t.value = "$regex", "regex", re
		t.cel = fmt.Sprintf("intent.agent_id.matches(%q)", re)
	case 3:
		t.match, t.tree = "", g.one("contains", "startsWith", "endsWith") // match objects have no such operator
		t.value = g.one("B", "ot", "OPS", "Ｏ", "team-A")
	case 4:
		t.match, t.tree = g.one("$gt", "$gte"), "gt"
		t.tree = strings.TrimPrefix(t.match, "$")
		t.cel = fmt.Sprintf("intent.agent_id %s %q", map[string]string{"$gt": ">", "$gte": ">="}[t.match], t.value)
	default:
		t.match, t.tree = "$eq", "eq"
		t.cel = fmt.Sprintf("agent.id == %q", t.value)
	}
	return t
}

// match draws a condition of form 1.
func (g *generator) match(depth int) map[string]any {
	m := map[string]any{}
	for range g.r.IntN(3) {
		t := g.term()
		for t.match == "" {
			t = g.term()
		}
		operand := map[string]any{t.match: t.value}
		if g.chance(15) {
			operand = map[string]any{"$not": operand}
		}
		m[t.field] = operand
	}
	if g.chance(15) {
		m[g.one("cost", "metadata", "metadata.env")] = map[string]any{"$exists": g.chance(50)}
	}
	if depth > 0 && g.chance(50) {
		m[g.one("$and", "$or", "$nor")] = []any{g.match(depth - 1), g.match(depth - 1)}
	}
	if depth > 0 && g.chance(20) {
		m["$not"] = g.match(depth - 1)
	}
	return m
}

// tree draws a condition of form 2.
func (g *generator) tree(depth int) map[string]any {
	if depth == 0 || g.chance(30) {
		t := g.term()
		return map[string]any{"field": t.field, "op": t.tree, "value": t.value}
	}
	switch g.r.IntN(3) {
	case 0:
		return map[string]any{"not": g.tree(depth - 1)}
	case 1:
		return map[string]any{"any": []any{g.tree(depth - 1), g.tree(depth - 1)}}
	}
	return map[string]any{"all": []any{g.tree(depth - 1), g.tree(depth - 1), g.tree(depth - 1)}}
}

// cel draws a condition of form 3 that can be rendered in Rego.
func (g *generator) cel(depth int) string {
	if depth == 0 || g.chance(25) {
		return g.celLeaf()
	}
	a, b := g.cel(depth-1), g.cel(depth-1)
	switch g.r.IntN(5) {
	case 4:
		return "(" + a + ") ? (" + b + ") : (" + g.cel(depth-1) + ")"
	case 0:
		return "!(" + a + ")"
	case 1, 2:
		return "(" + a + ") && (" + b + ")"
	}
	return "(" + a + ") || (" + b + ")"
}

func (g *generator) celLeaf() string {
	switch g.r.IntN(8) {
	case 0:
		return g.one("has(intent.cost)", "has(intent.metadata)", `"env" in intent.metadata`, "true", "false")
	case 2:
		return fmt.Sprintf("int(%s) %s", g.one("intent.metadata.n", `intent.metadata["n"]`, "intent.metadata.env", "intent.resource", "intent.cost.amount_minor"),
			g.one("== 5", "!= 0", "> 1", ">= -1", "< 1000000000000000000", "<= -9223372036854775807", "in [7, 5]", "> 9223372036854775806"))
	case 1:
		method := g.one("startsWith", "endsWith", "contains")
		return fmt.Sprintf("%s.%s(%q)", g.one("intent.resource", "intent.action_type", "intent.metadata.env", "intent.agent_id"), method,
			strings.TrimSpace(g.one("prod", "sql", "secrets", "x", "team-a/", "o")))
	}
	for {
		if t := g.term(); t.cel != "" {
			return t.cel
		}
	}
}
