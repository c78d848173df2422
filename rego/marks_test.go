package rego

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// marked returns the explanation of a condition in lines, such as "> false x > 1".
func marked(t *testing.T, c engine.RegoCondition, in *engine.RegoInput) string {
	t.Helper()
	leaves, because := c.Explain(in)
	var b strings.Builder
	for i, l := range leaves {
		mark, indent := " ", ""
		if i == because {
			mark = ">"
		}
		if !l.Rule && leaves[0].Rule {
			indent = "  "
		}
		if l.Error != "" {
			l.Error = " # " + l.Error
		}
		fmt.Fprintf(&b, "%s %s %s%s%s\n", mark, l.Result, indent, l.Text, l.Error)
	}
	return b.String()
}

// TestDecision_Explain_RegoLines checks this demand: --explain "marks each line of a body and each rule
// of a module true, false, undefined, failed or not reached, a leaf a line, the deciding one >, an
// error with its place".
func TestDecision_Explain_RegoLines(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{
			"a body", "# why\ninput.intent.action_type == \"deploy\"\nprint(\"x\")\nsome env in [\"dr\",\n\t\"none\"]\ninput.intent.metadata.env == env\ntrue\ninput.intent.cost",
			"  true input.intent.action_type == \"deploy\"\n  true some env in [\"dr\", \"none\"]\n> false input.intent.metadata.env == env\n  not_reached true\n  not_reached input.intent.cost\n",
		},
		{
			"a body that holds", "input.intent.cost; true; some x in [1, 2]; x == 2",
			"  true input.intent.cost\n  true true\n  true some x in [1, 2]\n  true x == 2\n",
		},
		{
			"reasons of a match",
			"package a\n\nmatch if input.intent.cost\n\nreason contains \"a\"\n\nreason contains \"b\" if input.intent.metadata.env == \"dr\"\n\nreason contains msg if {\n\tmsg := input.intent.metadata.env\n}",
			"> true match if\n  true   input.intent.cost\n  true reason contains \"a\"\n  undefined reason contains \"b\" if\n  false   input.intent.metadata.env == \"dr\"\n  not_reached reason contains msg if\n  not_reached   msg := input.intent.metadata.env\n",
		},
		{
			"a reason that fails", "package a\n\nmatch if input.intent.cost\n\nreason contains \"a\"\n\nreason contains sprintf(\"%d\", [to_number(input.intent.resource)])",
			"> true match if\n  true   input.intent.cost\n  not_reached reason contains \"a\"\n  not_reached reason contains sprintf(\"%d\", [to_number(input.intent.resource)])\n",
		},
		{
			"reasons of no match", "package a\n\nmatch if input.intent.metadata.none\n\nreason contains \"a\"",
			"  undefined match if\n> undefined   input.intent.metadata.none\n  not_reached reason contains \"a\"\n",
		},
		{
			"undefined", "input.intent.metadata.none\ninput.intent.cost",
			"> undefined input.intent.metadata.none\n  not_reached input.intent.cost\n",
		},
		{"an undefined operand", `input.intent.metadata.none == "x"`, "> undefined input.intent.metadata.none == \"x\"\n"},
		{"an undefined argument", `startswith(input.intent.metadata.none, "x")`, "> undefined startswith(input.intent.metadata.none, \"x\")\n"},
		{"an argument inside another", `startswith(lower(input.intent.metadata.env), "x")`, "> false startswith(lower(input.intent.metadata.env), \"x\")\n"},
		{"an assignment", `x := input.intent.metadata.none; x == "y"`, "> undefined x := input.intent.metadata.none\n  not_reached x == \"y\"\n"},
		{"a unification", `x := 1; x = 2`, "  true x := 1\n> false x = 2\n"},
		{"membership", `"x" in ["a"]; true`, "> false \"x\" in [\"a\"]\n  not_reached true\n"},
		{"a look-up", `{"a", "b"}[input.intent.metadata.env]`, "> undefined {\"a\", \"b\"}[input.intent.metadata.env]\n"},
		{"an iteration of nothing", `some x in {y | some y in [1]; y > 1}; x == 1`, "> undefined some x in {y | some y in [1]; y > 1}\n  not_reached x == 1\n"},
		{"not", `not input.intent.cost; true`, "> false not input.intent.cost\n  not_reached true\n"},
		{"not that holds", `not input.intent.metadata.none; input.intent.metadata.none`, "  true not input.intent.metadata.none\n> undefined input.intent.metadata.none\n"},
		{"every", "every x in [1, 2] {\n\tx > 1\n}", "> false every x in [1, 2] { x > 1 }\n"},
		{"every that holds", "every x in [2] { x > 1 }; false", "  true every x in [2] { x > 1 }\n> false false\n"},
		{"with", `input.intent.action_type == "x" with input.intent.action_type as "x"; input.intent.action_type == "x" with input.intent.action_type as "y"`, "  true input.intent.action_type == \"x\" with input.intent.action_type as \"x\"\n> false input.intent.action_type == \"x\" with input.intent.action_type as \"y\"\n"},
		{"a comprehension", `count([x | some x in [1, 2]; x > 1]) > 1`, "> false count([x | some x in [1, 2]; x > 1]) > 1\n"},
		{"an error", "input.intent.cost\nto_number(input.intent.metadata.env) > 5\ntrue", "  true input.intent.cost\n> failed to_number(input.intent.metadata.env) > 5 # 2:1: to_number has no result for what it was given\n  true true\n"},
		{"an error in an iteration", "some x in [\"7\", \"a\"]\nto_number(x) > 5\nx == \"a\"", "  true some x in [\"7\", \"a\"]\n> failed to_number(x) > 5 # 2:1: to_number has no result for what it was given\n  true x == \"a\"\n"},
		{"an error in a comprehension", "count([1 |\n\tto_number(input.intent.metadata.env) > 5]) > 0", "> failed count([1 | to_number(input.intent.metadata.env) > 5]) > 0 # 2:2: to_number has no result for what it was given\n"},
		{"a false line after an error", "to_number(input.intent.metadata.env) > 5\nfalse\ntrue", "  failed to_number(input.intent.metadata.env) > 5 # 1:1: to_number has no result for what it was given\n> false false\n  not_reached true\n"},

		{
			"a module", "package a\n\nimport rego.v1\n\n# ours\nmatch if {\n\tinput.intent.metadata.env == \"x\"\n\tlimit < 10\n}\n\nmatch if { # second\n\thelper\n}\n\nlimit := 5\n\nhelper if count(input.intent.metadata) > 5",
			"  undefined match if\n> false   input.intent.metadata.env == \"x\"\n  not_reached   limit < 10\n  undefined match if\n  undefined   helper\n  not_reached limit := 5\n  undefined helper if\n  false   count(input.intent.metadata) > 5\n",
		},
		{
			"several bodies", "package a\n\nmatch if input.intent.metadata.none\n\nmatch if true\n\nmatch if input.intent.cost",
			"  undefined match if\n  undefined   input.intent.metadata.none\n> true match if\n  true   true\n  not_reached match if\n  not_reached   input.intent.cost\n",
		},
		{
			"else", "package a\n\nmatch if {\n\tfalse\n} else := false if {\n\tinput.intent.metadata.none\n} else if input.intent.cost",
			"  undefined match if\n  false   false\n  undefined else := false if\n  undefined   input.intent.metadata.none\n> true else if\n  true   input.intent.cost\n",
		},
		{
			"else that is false", "package a\n\nmatch if {\n\tfalse\n} else := false",
			"  undefined match if\n> false   false\n  false else := false\n",
		},
		{
			"default", "package a\n\ndefault match := false\n\nmatch if input.intent.metadata.none",
			"  false default match := false\n  undefined match if\n> undefined   input.intent.metadata.none\n",
		},
		{
			"a default that is not reached", "package a\n\ndefault match := false\n\nmatch if input.intent.cost",
			"  not_reached default match := false\n> true match if\n  true   input.intent.cost\n",
		},
		{
			"a default that is true", "package a\n\ndefault match := true\n\nmatch := false if input.intent.metadata.none",
			"> true default match := true\n  undefined match := false if\n  undefined   input.intent.metadata.none\n",
		},
		{
			"a value that is false", "package a\n\nmatch := false if input.intent.cost",
			"> false match := false if\n  true   input.intent.cost\n",
		},
		{
			"a computed value", "package a\n\nmatch := x if x := input.intent.action_type == \"x\"",
			"> false match := x if\n  true   x := input.intent.action_type == \"x\"\n",
		},
		{
			"a computed value without a body", "package a\n\nmatch := input.intent.action_type == \"deploy\"",
			"> true match := input.intent.action_type == \"deploy\"\n",
		},
		{
			"functions", "package a\n\nis(\"x\", _) := true\n\nis(e, n) := n > 5 if e == \"prod\"\n\nmatch if is(input.intent.metadata.env, 6)\n\nmatch if is(input.intent.metadata.env, 5)\n\nmatch if is(\"none\", 5)",
			"  undefined is(\"x\", _) := true\n  true is(e, n) := n > 5 if\n  true   e == \"prod\"\n> true match if\n  true   is(input.intent.metadata.env, 6)\n  not_reached match if\n  not_reached   is(input.intent.metadata.env, 5)\n  not_reached match if\n  not_reached   is(\"none\", 5)\n",
		},
		{
			"a function that is false", "package a\n\nis(n) := n > 5\n\nmatch if is(5)",
			"  false is(n) := n > 5\n  undefined match if\n> false   is(5)\n",
		},
		{
			"a function without a value", "package a\n\nis(n) if n > 5\n\nmatch if is(5)",
			"  undefined is(n) if\n  false   n > 5\n  undefined match if\n> undefined   is(5)\n",
		},
		{
			"a helper that is false", "package a\n\ndefault is := false\n\nis if input.intent.metadata.none\n\nmatch if is",
			"  false default is := false\n  undefined is if\n  undefined   input.intent.metadata.none\n  undefined match if\n> false   is\n",
		},
		{
			"a set", "package a\n\nenvs contains \"dr\" if input.intent.metadata.none\n\nenvs contains lower(e) if some e in [\"PROD\"]\n\nenvs contains \"x\"\n\nmatch if input.intent.metadata.env in envs",
			"  undefined envs contains \"dr\" if\n  undefined   input.intent.metadata.none\n  true envs contains lower(e) if\n  true   some e in [\"PROD\"]\n  true envs contains \"x\"\n> true match if\n  true   input.intent.metadata.env in envs\n",
		},
		{
			"deny contains", "package a\n\ndeny contains \"none\" if input.intent.metadata.none\n\ndeny contains msg if {\n\tinput.intent.cost\n\tmsg := \"cost\"\n}",
			"  undefined deny contains \"none\" if\n  undefined   input.intent.metadata.none\n> true deny contains msg if\n  true   input.intent.cost\n  true   msg := \"cost\"\n",
		},
		{
			"deny contains nothing", "package a\n\ndeny contains msg if {\n\tinput.intent.metadata.none\n\tmsg := \"cost\"\n}",
			"  undefined deny contains msg if\n> undefined   input.intent.metadata.none\n  not_reached   msg := \"cost\"\n",
		},
		{
			"an error in a function", "package a\n\nn(e) := to_number(e)\n\nmatch if {\n\tinput.intent.cost\n\tn(input.intent.metadata.env) > 5\n}",
			"> failed n(e) := to_number(e) # 3:9: to_number has no result for what it was given\n  failed match if\n  true   input.intent.cost\n  failed   n(input.intent.metadata.env) > 5\n",
		},
		{
			"two values", "package a\n\nmatch := true if input.intent.cost\n\nmatch := false if true",
			"  true match := true if\n  true   input.intent.cost\n> failed match := false if # 5:1: its rules have different values\n  true   true\n",
		},
		{
			"a false line after an error in a helper", "package a\n\nis if {\n\tto_number(input.intent.metadata.env) > 5\n\tfalse\n}\n\nmatch if is",
			"  failed is if\n  failed   to_number(input.intent.metadata.env) > 5 # 4:2: to_number has no result for what it was given\n  false   false\n  undefined match if\n> undefined   is\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := must.Get(CompileCondition(tt.source))(t)
			if diff := cmp.Diff(tt.want, marked(t, c, sampleInput())); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tt.source, diff)
			}
		})
	}
}

// generatedModule returns a random module. Its lines hold, do not hold, or fail.
func generatedModule(r *rand.Rand) string {
	one := func(all ...string) string { return all[r.IntN(len(all))] }
	line := func() string {
		return one("true", "input.intent.cost", "input.intent.metadata.none", "false", failing, surelyFalse,
			`input.intent.action_type == "deploy"`, `input.intent.metadata.none == "x"`, "not false", "not input.intent.cost",
			"some x in [1, 2]; x > 1", "some y in [\"7\", \"a\"]; to_number(y) > 8", "every z in [1, 2] { z > 0 }",
			"every z in [\"1\", \"a\"] { to_number(z) > 1 }", "helper", "is(input.intent.metadata.env)", "is(\"none\")",
			"not helper", "count(names) > 1", "count([1 | helper]) > 0", "v == 1", "v := is(\"a\")", "input.intent.cost with input.intent.metadata as {}",
			"to_number(input.intent.metadata.env) > 1 with input.intent.metadata.env as \"7\"")
	}
	body := func() string {
		lines := []string{line()}
		for range r.IntN(4) {
			lines = append(lines, line())
		}
		return "{\n\t" + strings.Join(lines, "\n\t") + "\n}\n"
	}
	var b strings.Builder
	b.WriteString("package a\n\n")
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "default match := %s\n\n", one("true", "false"))
	}
	for range 1 + r.IntN(3) {
		b.WriteString(one("match if ", "match if ", "match := true if ", "match := false if ") + body())
		if r.IntN(4) == 0 {
			b.WriteString(" else := " + one("true", "false") + " if " + body())
		}
		b.WriteString("\n")
	}
	b.WriteString(one("default helper := false\n\n", "") + "helper if " + body() + one("\nhelper if "+body(), ""))
	b.WriteString("\nis(\"none\") := false\n\nis(e) := e != \"x\" if " + body())
	b.WriteString("\nnames contains \"a\" if " + body() + "\nnames contains \"b\"\n\nv := 1 if " + body())
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), "}\n else", "} else"), "v := is(", "w := is(")
}

// TestExplain_SaysWhatTheDecisionIs compares the marks with the decisions of generated modules. The
// rule that decides is true exactly if the condition matches. A failed line is the reason exactly if
// the condition is an error. An explanation takes no steps that the decision does not take.
func TestExplain_SaysWhatTheDecisionIs(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(1000) {
		source := generatedModule(rand.New(rand.NewPCG(seed, 30)))
		c, err := CompileCondition(source)
		if err != nil {
			seen["refused"]++
			continue
		}
		var decided, explained condition.Work
		in := sampleInput()
		in.Work = &decided
		matches, err := c.Match(in)
		in.Work = &explained
		leaves, because := c.Explain(in)
		want, got := map[bool]string{true: "true", false: "no"}[matches], "no"
		if err != nil {
			want = "failed"
		}
		if because >= 0 && (leaves[because].Result == "failed" || leaves[because].Result == "true") {
			got = leaves[because].Result
		}
		if because < 0 || got != want || explained.Left() < decided.Left() && c.(*sandboxed).meets(in, new(condition.Work)) {
			t.Fatalf("seed %d: Match = %s, %v, and the marks say %s; steps left %d and %d\n%s\n%s", seed, want, err, got,
				decided.Left(), explained.Left(), source, marked(t, c, sampleInput()))
		}
		seen[want]++
		for _, l := range leaves {
			seen["mark "+l.Result]++
		}
	}
	for _, s := range []string{"true", "no", "failed", "mark true", "mark false", "mark undefined", "mark failed", "mark not_reached"} {
		if seen[s] < 30 {
			t.Errorf("%d modules are %s: %v", seen[s], s, seen)
		}
	}
}

// TestExplain_EndsWithItsBudget checks that an explanation ends where the decision ends, and says so.
func TestExplain_EndsWithItsBudget(t *testing.T) {
	c := must.Get(CompileCondition("some x in [1, 2, 3, 4]; x > 5"))(t)
	var work condition.Work
	work.Charge(work.Left() - 2*stepsPerExpr)
	in := sampleInput()
	in.Work = &work
	leaves, because := c.Explain(in)
	if because < 0 || leaves[because].Result != "failed" || leaves[because].Cause != condition.CauseWork.String() {
		t.Errorf("Explain = %v, %d, want a line that did too much", leaves, because)
	}
}

// TestExplain_HoldsNoMetadata checks that no message repeats a value of the input.
func TestExplain_HoldsNoMetadata(t *testing.T) {
	in := sampleInput()
	in.Intent.Metadata["secret"] = "hunter2"
	for _, source := range []string{
		"to_number(input.intent.metadata.secret) > 5", "net.cidr_contains(input.intent.metadata.secret, \"10.0.0.1\")",
		"time.parse_rfc3339_ns(input.intent.metadata.secret) > 5",
		"package a\n\nf(x) := x\n\nmatch if f(input.intent.metadata.secret) == to_number(input.intent.metadata.secret)",
		"package a\n\nv := input.intent.metadata.secret\n\nv := \"x\" if true\n\nmatch if v == \"x\"",
	} {
		if got := marked(t, must.Get(CompileCondition(source))(t), in); strings.Contains(got, "hunter2") || !strings.Contains(got, "failed") {
			t.Errorf("Explain of %s:\n%s", source, got)
		}
	}
}

// TestExplain_OfLibraries checks the place of an error in a library.
func TestExplain_OfLibraries(t *testing.T) {
	l := must.Get(CompileLibraries([]engine.Library{lib("a", "n(e) := to_number(e)\n\nis(e) if e == \"x\"")}))(t)
	c := must.Get(l.Compile("data.lib.a.n(input.intent.metadata.env) > 5"))(t)
	want := "> failed data.lib.a.n(input.intent.metadata.env) > 5 # a/"
	if got := marked(t, c, sampleInput()); !strings.HasPrefix(got, want) || !strings.Contains(got, ".rego:") {
		t.Errorf("Explain = %s, want %s…", got, want)
	}
	c = must.Get(l.Compile("data.lib.a.is(input.intent.metadata.env)"))(t)
	if got := marked(t, c, sampleInput()); !strings.HasPrefix(got, "> undefined ") {
		t.Errorf("Explain = %s, want it undefined", got)
	}
}
