package rego

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/internal/must"
)

// demandsIn returns the demands of a condition as text.
func demandsIn(t *testing.T, source string) string {
	t.Helper()
	c := must.Get(CompileCondition(source))(t)
	var all []string
	for _, d := range c.Reads().Demands {
		s := d.Field.Label()
		if d.Values != nil || d.Prefixes == nil {
			s += fmt.Sprint(" = ", d.Values)
		}
		if d.Prefixes != nil {
			s += fmt.Sprint(" starts ", d.Prefixes)
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

func TestDemands(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{"equality", `input.intent.action_type == "db.drop"`, "action_type = [db.drop]"},
		{"equality the other way round", `"db.drop" = input.intent.action_type`, "action_type = [db.drop]"},
		{"a name for the text", `t := input.intent.action_type; t == "a"`, "action_type = [a]"},
		{"a name for the intent", `i := input.intent; i.action_type == "a"`, "action_type = [a]"},
		{"a name for the constant", `c := "a"; input.intent.action_type == c`, "action_type = [a]"},
		{"membership of a set", `input.intent.action_type in {"a", "b"}`, "action_type = [a b]"},
		{"membership of an array", `input.intent.action_type in ["a", "b"]`, "action_type = [a b]"},
		{"membership of an object", `input.intent.action_type in {"k": "a"}`, "action_type = [a]"},
		{"membership of nothing", `input.intent.action_type in set()`, "action_type = []"},
		{"one of a list", `some t in ["a", "b"]; input.intent.action_type == t`, "action_type = [a b]"},
		{"look-up", `{"a", "b"}[input.intent.action_type]`, "action_type = [a b]"},
		{"look-up in an object", `{"a": false, "b": true}[input.intent.action_type]`, "action_type = [a b]"},
		{"prefix", `startswith(input.intent.action_type, "svc7.")`, "action_type starts [svc7.]"},
		{"prefixes", `strings.any_prefix_match(input.intent.action_type, ["a.", "b."])`, "action_type starts [a. b.]"},
		{"every text has the empty prefix", `startswith(input.intent.action_type, "")`, ""},
		{"glob", `glob.match("db.*", null, input.intent.action_type)`, "action_type starts [db.]"},
		{"glob with a slash", `glob.match("prod/**", ["/"], input.intent.resource)`, "resource starts [prod/]"},
		{"glob with alternatives", `glob.match("prod/{a,b}", ["/"], input.intent.resource)`, "resource starts [prod/]"},
		{"glob that is a text", `glob.match("db.drop", [], input.intent.action_type)`, "action_type = [db.drop]"},
		{"glob that begins with a star", `glob.match("*.drop", [], input.intent.action_type)`, ""},
		{"metadata", `input.intent.metadata["ticket id"] == "7"`, "metadata.ticket id = [7]"},
		{"a metadata key with dots", `input.intent.metadata["a.b"] == "7"`, "metadata.a.b = [7]"},
		{"currency", `input.intent.cost.currency == "EUR"`, "cost.currency = [EUR]"},
		{"agent by its other name", `input.agent.id == "bot"`, "agent_id = [bot]"},
		{"status", `input.agent.status == "disabled"`, "agent.status = [disabled]"},
		{"several lines", `input.intent.action_type == "a"; startswith(input.intent.resource, "b"); input.intent.cost.amount_minor > 5`,
			"action_type = [a]; resource starts [b]"},
		{"a constant of the module", "package p\n\ntypes := {\"a\", \"b\"}\n\nmatch if input.intent.action_type in types", "action_type = [a b]"},
		{"a look-up in the module", "package p\n\ntypes := {\"a\", \"b\"}\n\nmatch if types[input.intent.action_type]", "action_type = [a b]"},
		{"part of a constant", "package p\n\nc := {\"types\": [\"a\"]}\n\nmatch if input.intent.action_type in c.types", ""},
		{"an import", "package p\n\nimport input.intent as i\n\nmatch if i.action_type == \"a\"", "action_type = [a]"},
		{"every body", "package p\n\nmatch if input.intent.action_type == \"a\"\n\nmatch if startswith(input.intent.action_type, \"b\")", "action_type = [a] starts [b]"},
		{"a body without", "package p\n\nmatch if input.intent.action_type == \"a\"\n\nmatch if input.intent.metadata.env == \"b\"", ""},
		{"deny", "package p\n\ndeny if input.intent.action_type == \"a\"", "action_type = [a]"},
		{"allow", "package p\n\nallow if input.intent.action_type == \"a\"", "action_type = [a]"},
		{"a set of denies", "package p\n\ndeny contains \"no\" if input.intent.action_type == \"a\"", "action_type = [a]"},
		{"a set of denies with a message", "package p\n\ndeny contains msg if {\n\tinput.intent.action_type == \"a\"\n\tmsg := sprintf(\"no %s\", [input.intent.resource])\n}", "action_type = [a]"},
		{"every body of a set", "package p\n\ndeny contains \"no\" if input.intent.action_type == \"a\"\n\ndeny contains \"never\" if startswith(input.intent.action_type, \"b\")", "action_type = [a] starts [b]"},
		{"a body of a set without", "package p\n\ndeny contains \"no\" if input.intent.action_type == \"a\"\n\ndeny contains \"never\" if input.intent.cost", ""},
		{"an element of a set without a body", "package p\n\ndeny contains \"no\" if input.intent.action_type == \"a\"\n\ndeny contains \"never\"", ""},
		{"a set of denies that is constant", "package p\n\ndeny contains input.intent.action_type", ""},
		{"a set of denies from another set", "package p\n\nw contains \"x\" if input.intent.action_type == \"a\"\n\ndeny contains msg if some msg in w", ""},
		{"not in a set of denies", "package p\n\ndeny contains \"no\" if not input.intent.action_type == \"a\"", ""},
		{"with in a set of denies", "package p\n\ndeny contains \"no\" if input.intent.action_type == \"a\" with input.intent.action_type as \"a\"", ""},
		{"a reason", "package p\n\nmatch if input.intent.cost\n\nreason contains \"no\" if input.intent.action_type == \"a\"", ""},
		{"match decides, not deny", "package p\n\nmatch if input.intent.cost\n\ndeny contains \"no\" if input.intent.action_type == \"a\"", ""},
		{"a default that is false", "package p\n\ndefault match := false\n\nmatch if input.intent.action_type == \"a\"", "action_type = [a]"},

		{"a default that is true", "package p\n\ndefault match := true\n\nmatch := false if input.intent.action_type == \"a\"", ""},
		{"else", "package p\n\nmatch if input.intent.action_type == \"a\"\n\nelse if startswith(input.intent.action_type, \"b\")", ""},
		{"not", `not input.intent.action_type == "a"`, ""},
		{"not of a body", `x := "a"; not startswith(input.intent.action_type, x)`, ""},
		{"with", `input.intent.action_type == "a" with input.intent.action_type as "a"`, ""},
		{"with of the intent", `startswith(input.intent.action_type, "a") with input as {"intent": {"action_type": "a"}}`, ""},
		{"a name from a line with with", `t := input.intent.action_type with input.intent.action_type as "a"; t == "a"`, ""},
		{"with of a constant", "package p\n\ntypes := {\"a\"}\n\nmatch if input.intent.action_type in types with types as {\"b\"}", ""},

		{"another value", `input.intent.action_type == input.intent.metadata.x`, ""},
		{"a list of the organization", `input.intent.agent_id in input.lists.things`, ""},
		{"a comparison whose value is used", `x := startswith(input.intent.action_type, "a"); x == false`, ""},
		{"a value of match", "package p\n\nmatch := input.intent.action_type == \"a\"", ""},
		{"within a comprehension", `count([1 | input.intent.action_type == "a"]) == 0`, ""},
		{"within every", `every x in [] { input.intent.action_type == x }`, ""},
		{"another rule", "package p\n\nis if input.intent.action_type == \"a\"\n\nmatch if not is", ""},
		{"a rule that is not only a constant", "package p\n\ntypes := {\"a\"} if input.intent.cost\n\nelse := {\"b\"}\n\nmatch if input.intent.action_type in types", ""},
		{"two rules", "package p\n\ntypes contains \"a\"\n\ntypes contains input.intent.resource\n\nmatch if input.intent.action_type in types", ""},
		{"a default of another rule", "package p\n\ndefault types := {\"a\"}\n\ntypes := {\"b\"} if input.intent.cost\n\nmatch if input.intent.action_type in types", ""},
		{"any member", `input.intent[_] == "a"`, ""},
		{"any key", `input.intent.metadata[_] == "a"`, ""},
		{"a part of a text", `lower(input.intent.action_type) == "a"`, ""},
		{"unequal", `input.intent.action_type != "a"`, ""},
		{"the end of a text", `endswith(input.intent.action_type, "a")`, ""},
		{"a time", `input.intent.issued_at == "2026-01-01T00:00:00Z"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := demandsIn(t, tt.source); got != tt.want {
				t.Errorf("demands of\n%s\n= %q, want %q", tt.source, got, tt.want)
			}
		})
	}
}

func TestReads(t *testing.T) {
	for _, tt := range []struct{ source, want string }{
		{`input.intent.action_type == "a"`, ""},
		{`input.intent.metadata[k] == "a"`, ""},
		{`input.intent.resource == "a"`, "resource"},
		{`startswith(input.intent.agent_id, "a")`, "agent"},
		{`input.agent.id == "a"`, "agent"},
		{`input.agent.status == "active"`, ""},
		{`input.intent[k] == "a"`, "resource agent"},
		{`input.intent[lower("RESOURCE")] == "a"`, "resource agent"},
		{`input[x].id == "a"`, "agent"},
		{`some k, v in input.intent; k == "x"`, "resource agent"},
		{`count(input) == 4`, "resource agent"},
		{`count(input.agent) == 2`, "agent"},
		{`object.get(input, ["intent", "resource"], "") == "a"`, "resource agent"},
		{`x := [y | y := input.intent.resource]; count(x) == 1`, "resource"},
		{`every x in ["a"] { input.intent.resource == x }`, "resource"},
		{`not input.intent.resource == "a"`, "resource"},
		{`walk(input.agent, [_, "a"])`, "agent"},
		{"package p\n\nf(i) if i.resource == \"a\"\n\nmatch if f(input.intent)", "resource agent"},
		{"package p\n\nimport input.intent as i\n\nmatch if i.action_type == \"a\"", ""},
		{"package p\n\nx if input.intent.resource == \"a\"\n\nmatch if x", "resource"},
		{"package p\n\nmatch if input.intent.action_type == \"a\"\n\nelse if input.intent.resource == \"b\"", "resource"},
	} {
		reads := must.Get(CompileCondition(tt.source))(t).Reads()
		var got []string
		if reads.Resource {
			got = append(got, "resource")
		}
		if reads.Agent {
			got = append(got, "agent")
		}
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s\nreads %v, want %s", tt.source, got, tt.want)
		}
	}
}
