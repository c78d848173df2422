package rego

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// exploding returns conditions that make large values out of the input alone, so that the compiler
// cannot find them.
func exploding() map[string]string {
	return map[string]string{
		"characters":             `count(split(concat("", [input.intent.resource | some i in numbers.range(1, to_number(input.intent.metadata.n))]), "")) > 0`,
		"a repeated text":        `count(concat("", [input.intent.resource | some i in numbers.range(1, to_number(input.intent.metadata.n))])) > 0`,
		"a range":                `count(numbers.range(1, to_number(input.intent.metadata.n) * 1000)) > 0`,
		"a range of steps":       `count(numbers.range_step(1, to_number(input.intent.metadata.n) * 1000, 2)) > 0`,
		"a range of great limit": `count(numbers.range(1, to_number(input.intent.metadata.great))) > 0`,
		"replacements":           `some i in numbers.range(1, to_number(input.intent.metadata.n)); count(replace(input.intent.resource, "a", "` + strings.Repeat("b", 1000) + `")) < 0`,
		"texts in a document":    `r := concat("", ["[", concat(",", ["[]" | some i in numbers.range(1, to_number(input.intent.metadata.n)); some j in numbers.range(1, 30)]), "]"]); count(json.unmarshal(r)) > 0`,
		"joined lists":           `some i in numbers.range(1, 1000); x := [j | some j in numbers.range(1, to_number(input.intent.metadata.n))]; count(array.concat(x, x)) < 0`,
		"nested loops":           `some a in input.intent.metadata; some b in input.intent.metadata; some c in input.intent.metadata; concat("", [a, b, c]) == "none"`,
		"a dear expression":      `r := concat("", [input.intent.resource | some i in numbers.range(1, 1000)]); regex.match("(a|b)*c{200}$", r)`,
		"a text of texts":        `x := [input.intent.resource | some i in numbers.range(1, to_number(input.intent.metadata.n))]; sprintf("%v", [x]) != sprintf("%v", [[x]])`,
		"a template":             `x := [input.intent.resource | some i in numbers.range(1, to_number(input.intent.metadata.n))]; $"{x}" != ""`,
		"a document of texts":    `x := [input.intent.resource | some i in numbers.range(1, to_number(input.intent.metadata.n))]; json.marshal(x) != ""`,
		"quotes in quotes":       chain(30, "NEW := {OLD: 1}") + `json.marshal(x30) != ""`,
		"lists in lists":         `x := numbers.range(1, to_number(input.intent.metadata.n)); object.subset(array.concat(x, x), array.concat(x, [0]))`,
		"pairs of networks":      `x := ["10.0.0.0/8" | some i in numbers.range(1, to_number(input.intent.metadata.n))]; count(net.cidr_contains_matches(x, x)) > 0`,
		"in place of another":    `f_is_true with input.intent as {"resource": "x"}; count(numbers.range(1, to_number(input.intent.metadata.n) * 1000)) > 0`,
	}
}

func hostileInput(work *condition.Work) *engine.RegoInput {
	in := sampleInput()
	intent := *in.Intent
	intent.Resource = strings.Repeat("ab/", condition.MaxText/3)
	intent.Metadata = map[string]string{"n": "3000", "great": "999999999999999"}
	for i := range condition.MaxMetadataKeys - 2 {
		intent.Metadata[fmt.Sprint("k", i)] = strings.Repeat("v", 20)
	}
	in.Intent, in.Resource, in.Work = &intent, intent.Resource, work
	return in
}

// TestDecision_Bounds_RegoIsChargedByStepsAndBytes checks this decision:
// "Time in the slot is charged to the organization, Rego by steps and by the
// bytes that its built-ins make. … An excess is an error, which tightens."
func TestDecision_Bounds_RegoIsChargedByStepsAndBytes(t *testing.T) {
	// mostMade is far less than these conditions make without a bound. It is more than their steps
	// allow, because a step is a byte.
	const mostMade = 64 << 20
	for name, source := range exploding() {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(source, "f_is_true") {
				source = "package a\n\nf_is_true if input.intent.resource == \"x\"\n\nmatch if {\n" + source + "\n}"
			}
			c := must.Get(CompileCondition(source))(t)
			var (
				work          condition.Work
				before, after runtime.MemStats
			)
			runtime.ReadMemStats(&before)
			got, err := c.Match(hostileInput(&work))
			runtime.ReadMemStats(&after)
			if got || !errors.Is(err, condition.ErrTooMuchWork) || work.Left() != 0 {
				t.Errorf("Match = %v, %v with %d steps left, want an error with none", got, err, work.Left())
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > mostMade {
				t.Errorf("Match made %d MiB, want at most %d", made>>20, mostMade>>20)
			}
		})
	}
}

// TestDecision_Bounds_ConditionsShareTheirSteps checks this decision:
// "All conditions of one evaluation share a step budget."
func TestDecision_Bounds_ConditionsShareTheirSteps(t *testing.T) {
	c := must.Get(CompileCondition(`count([1 | some k, v in input.intent.metadata; startswith(v, "v")]) > 5`))(t)
	var work condition.Work
	in, all := hostileInput(&work), work.Left()
	if ok, err := c.Match(in); !ok || err != nil {
		t.Fatalf("the first Match = %v, %v, want true", ok, err)
	}
	each := all - work.Left()
	for range 3 { // every Match takes the same number of steps
		if before := work.Left(); !match(t, c, in) || before-work.Left() != each {
			t.Fatalf("Match took %d steps, want %d as the first", before-work.Left(), each)
		}
	}
	var err error
	for range work.Left()/each + 1 {
		_, err = c.Match(in)
	}
	if !errors.Is(err, condition.ErrTooMuchWork) {
		t.Errorf("Match after the steps were done = %v, want %v", err, condition.ErrTooMuchWork)
	}
	if ok, err := c.Match(hostileInput(new(condition.Work))); !ok || err != nil {
		t.Errorf("Match of another evaluation = %v, %v, want true", ok, err)
	}
}

func match(t *testing.T, c engine.RegoCondition, in *engine.RegoInput) bool {
	t.Helper()
	ok := must.Get(c.Match(in))(t)
	return ok
}

// TestMeters_AreCalledEverywhere checks that every call of a function goes through the function's
// meter.
func TestMeters_AreCalledEverywhere(t *testing.T) {
	for name, source := range map[string]string{
		"nested":            `count(split(lower(input.intent.resource), "/")) > 1`,
		"in comprehensions": `x := {y: z | some y in split(input.intent.resource, "/"); z := [upper(w) | some w in [y]]}; count(x) > 0`,
		"under every":       `every p in split(input.intent.resource, "/") { count(p) > 0 }`,
		"under not":         `not contains(input.intent.resource, "x")`,
		"in a head":         "package a\n\nf(x) := upper(x)\n\nparts contains lower(p) if some p in split(input.intent.resource, \"/\")\n\nmatch if f(\"a\") in parts",
		"in an else":        "package a\n\ndefault match := false\n\nmatch if startswith(input.intent.resource, \"a\")\n\nelse if endswith(input.intent.resource, \"b\")",
		"replaced":          "package a\n\nmock(x) := \"prod\"\n\nmatch if lower(input.intent.resource) == \"prod\" with lower as mock",
	} {
		t.Run(name, func(t *testing.T) {
			module := must.Get(parseCondition(source))(t)
			c := must.Get(compile(map[string]*ast.Module{entry: module}, conditionSchema()))(t)
			if m := newMeters(c, new(Libraries), module); len(m.functions) == 0 {
				t.Error("no function has a meter")
			}
			for _, m := range c.Modules {
				ast.WalkTerms(m, func(x *ast.Term) bool {
					ref, ok := x.Value.(ast.Ref)
					if !ok {
						return false
					}
					if _, builtin := ast.BuiltinMap[ref.String()]; builtin && !unmetered(ref.String()) {
						t.Errorf("%v is called without a meter", ref)
					}
					return false
				})
			}
			compiled := must.Get(CompileCondition(source))(t)
			var work condition.Work
			in := sampleInput()
			in.Work = &work
			all := work.Left()
			if _, err := compiled.Match(in); err != nil || all-work.Left() <= stepsPerExpr {
				t.Errorf("Match = %v with %d steps, want nil and what its functions made", err, all-work.Left())
			}
		})
	}
}

func TestMeters_LeaveSubstitutesInForce(t *testing.T) {
	c := must.Get(CompileCondition("package a\n\nmock(_) := \"other\"\n\nmatch if lower(input.intent.resource) == \"other\" with lower as mock"))(t)
	if !match(t, c, sampleInput()) {
		t.Error("Match = false, want true: a function of the module stands in for lower")
	}
}
