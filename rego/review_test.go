package rego

import (
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// review compiles source, and returns the condition and its review.
func review(t *testing.T, source string) (engine.RegoCondition, condition.Review) {
	t.Helper()
	c, err := CompileCondition(source)
	if err != nil {
		t.Fatalf("CompileCondition = %v\n%s", err, source)
	}
	return c, c.Review()
}

// TestReview_Dodges checks that Dodges is right. Each condition holds for an intent with env.
// Without env it holds exactly if env is not in Dodges.
func TestReview_Dodges(t *testing.T) {
	const pkg = "package a\n\n"
	for source, dodges := range map[string]bool{
		`input.intent.metadata.env == "prod"`:                                                            true,
		`input.intent.metadata["env"] == "prod"`:                                                         true,
		`"prod" == input.intent.metadata.env`:                                                            true,
		`input.intent.metadata.env != "dev"`:                                                             true,
		`input.intent.metadata.env in ["prod"]`:                                                          true,
		`startswith(input.intent.metadata.env, "p")`:                                                     true,
		`not startswith(input.intent.metadata.env, "x")`:                                                 true,
		`not lower(input.intent.metadata.env) == "dev"`:                                                  true,
		`not input.intent.metadata.env != "prod"`:                                                        true,
		`not input.intent.metadata.env == "dev"`:                                                         false,
		`not "dev" == input.intent.metadata.env`:                                                         false,
		`e := input.intent.metadata.env; e == "prod"`:                                                    true,
		`m := input.intent.metadata; m.env == "prod"`:                                                    true,
		`object.get(input.intent.metadata, "env", "prod") == "prod"`:                                     false,
		pkg + "match if prod\n\nprod if input.intent.metadata.env == \"prod\"":                           true,
		pkg + "match if data.a.prod\n\nprod if input.intent.metadata.env == \"prod\"":                    true,
		pkg + "match if not dev\n\ndev if input.intent.metadata.env == \"dev\"":                          false,
		pkg + "match if not prod\n\nprod if not input.intent.metadata.env == \"prod\"":                   true,
		pkg + "env := input.intent.metadata.env\n\nmatch if env == \"prod\"":                             true,
		pkg + "import input.intent.metadata as m\n\nmatch if m.env == \"prod\"":                          true,
		pkg + "match := input.intent.metadata.env == \"prod\"":                                           true,
		pkg + "default match := true\n\nmatch := false if input.intent.metadata.env == \"dev\"":          false,
		pkg + "match if input.intent.metadata.env == \"prod\"\n\nmatch if not input.intent.metadata.env": false,
	} {
		t.Run(source, func(t *testing.T) {
			c, got := review(t, source)
			if slices.Contains(got.Dodges, "metadata.env") != dodges {
				t.Errorf("Dodges = %v, want env in it: %v", got.Dodges, dodges)
			}
			in := sampleInput()
			if !match(t, c, in) {
				t.Error("the condition does not hold of an intent with env")
			}
			delete(in.Intent.Metadata, "env")
			if match(t, c, in) == dodges {
				t.Errorf("without env it holds: %v, want %v", dodges, !dodges)
			}
		})
	}
	if _, got := review(t, `input.intent.metadata.env; input.intent.metadata.env == "prod"`); len(got.Dodges) > 0 {
		t.Errorf("Dodges = %v of a source that asks for the key, want none", got.Dodges)
	}
}

func TestReview_ExceptsResource(t *testing.T) {
	const pkg = "package a\n\n"
	for source, excepts := range map[string]bool{
		`input.intent.resource != "a"`:                                                    true,
		`"a" != input.intent.resource`:                                                    true,
		`not input.intent.resource == "a"`:                                                true,
		`not startswith(input.intent.resource, "a")`:                                      true,
		`not input.intent.resource in ["a", "b"]`:                                         true,
		`r := input.intent.resource; r != "a"`:                                            true,
		`r := lower(input.intent.resource); r != "a"`:                                     true,
		`i := input.intent; not i.resource == "a"`:                                        true,
		`same := input.intent.resource != "a"; same`:                                      true,
		`lower(input.intent.resource) != "a"`:                                             true,
		pkg + "match if not ok\n\nok if input.intent.resource == \"a\"":                   true,
		pkg + "match := input.intent.resource != \"a\"":                                   true,
		pkg + "default match := true\n\nmatch := false if input.intent.resource == \"a\"": true,
		pkg + "match if { every x in [\"a\"] { x != input.intent.resource } }":            true,
		`not input.intent.resource != "a"`:                                                false,
		pkg + "match if not other\n\nother if input.intent.resource != \"a\"":             false,
		`input.intent.resource == "a"`:                                                    false,
		`startswith(input.intent.resource, "a"); input.intent.action_type != "deploy"`:    false,
	} {
		t.Run(source, func(t *testing.T) {
			if _, got := review(t, source); got.ExceptsResource != excepts {
				t.Errorf("ExceptsResource = %v, want %v", got.ExceptsResource, excepts)
			}
		})
	}
}

// TestDecision_Rules_RegoOrdersMetadataByNumbersAlone checks this decision:
// "ordering a metadata value against a string operand that looks like a number is
// 400 with the hint": in Rego a number is, too, because every text is after it.
func TestDecision_Rules_RegoOrdersMetadataByNumbersAlone(t *testing.T) {
	for source, want := range map[string]string{
		`input.intent.metadata.n > "5000"`:                   `line 1, column 1: metadata.n orders as text, in which "10" comes before "9"`,
		`"5000" <= input.intent.metadata["n"]`:               `line 1, column 11: metadata.n orders as text`,
		`input.intent.metadata.n > 5000`:                     `line 1, column 1: metadata.n is text, which Rego orders after every number`,
		`x := input.intent.metadata.n; x < 7.5`:              `line 1, column 31: metadata.n is text`,
		"package a\n\nmatch if input.intent.metadata.n >= 5": `line 3, column 10: metadata.n is text`,
		"package a\n\nmatch := input.intent.metadata.n >= 5": `line 3, column 10: metadata.n is text`,
		`to_number(input.intent.metadata.n) > 5000`:          "",
		`input.intent.metadata.n > "b"`:                      "",
		`input.intent.cost.amount_minor > 5000`:              "",
		`input.intent.metadata.n == "5000"`:                  "",
		`count(input.intent.metadata.n) > 5`:                 "",
	} {
		t.Run(source, func(t *testing.T) {
			quoted := strings.ReplaceAll(strings.ReplaceAll(source, `"`, `\"`), "\n", `\n`)
			rule := sampleRule("r", "r", `{"rego":"`+quoted+`"}`, `{"decision":"deny"}`)
			options := engine.Options{CompileRego: CompileCondition}
			err := engine.ValidateRule(rule, options)
			switch {
			case want == "" && err != nil:
				t.Errorf("ValidateRule = %v, want nil", err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), "condition: at /rego, "+want)):
				t.Errorf("ValidateRule = %v, want %s", err, want)
			}
			// Rules that are already stored keep running.
			if broken := engine.CompileRules([]engine.Rule{rule}, options).Broken(); len(broken) > 0 {
				t.Errorf("Broken = %v, want none", broken)
			}
		})
	}
}

// TestReview_IsLinearInNames checks that a review ends although each name stands for the one before
// several times. The review follows each name once.
func TestReview_IsLinearInNames(t *testing.T) {
	var source strings.Builder
	source.WriteString("x0 := input.intent.resource\n")
	for i := 'a'; i <= 'z'; i++ {
		previous := "x0"
		if i > 'a' {
			previous = "x" + string(i-1)
		}
		source.WriteString("x" + string(i) + " := concat(\"\", [" + strings.TrimSuffix(strings.Repeat(previous+", ", 2), ", ") + "])\n")
	}
	c := &sandboxed{source: source.String() + `xz != "a"`}
	if got := c.review(); !got.ExceptsResource {
		t.Error("ExceptsResource = false, want true through 26 names")
	}
}

// TestExplain_CausesOfRego checks this decision:
// "The error and its cause appear in explain output; never a metadata value."
func TestExplain_CausesOfRego(t *testing.T) {
	policy := must.Get(engine.CompilePolicy(samplePolicy()))(t)
	rule := sampleRule("r", "r", `{"rego":"to_number(input.intent.metadata.env) > 5"}`, `{"decision":"deny"}`)
	rules := must.Get(compileRules([]engine.Rule{rule}, nil, nil))(t)
	in := evaluationInput()
	in.Trace = &engine.Trace{}
	result := engine.Evaluate(policy, rules, in)
	const want = condition.CauseFunction
	if e := in.Trace.Rules[0].Err; e == nil || e.Cause != want || result.ConditionErrors[want] != 1 || strings.Contains(e.Error(), "prod") {
		t.Errorf("error %v, counts %v, want one of %v", e, result.ConditionErrors, want)
	}
}

func TestReview_ThroughTheRule(t *testing.T) {
	rule := must.Get(engine.CompileRule(
		sampleRule("r", "r", `{"rego":"input.intent.resource != \"a\"; input.intent.metadata.env == \"prod\"; input.intent.cost.amount_minor > 5"}`, `{"decision":"deny"}`),
		engine.Options{CompileRego: CompileCondition}))(t)
	if got := rule.Review(); !got.ExceptsResource || !slices.Equal(got.Dodges, []string{"cost", "metadata.env"}) {
		t.Errorf("Review = %+v, want the resource, env and the cost", got)
	}
}

func TestReview_Fields(t *testing.T) {
	const pkg = "package a\n\n"
	for source, want := range map[string]string{
		`input.intent.metadata.env == "prod"`:                                     "metadata.env",
		`input.intent.metadata[_] == "prod"`:                                      "metadata",
		`m := input.intent.metadata; m["fact.x"] == "y"`:                          "metadata.fact.x",
		`input.intent.cost.amount_minor > 5; input.agent.status == "active"`:      "agent.status cost.amount_minor",
		`m := input.intent.metadata; count(m) > 0`:                                "metadata",
		`input.agent.id == "a"; input.policy.version > 2`:                         "agent_id policy.version",
		pkg + "import input.intent as i\n\nmatch if i.action_type == \"deploy\"":  "action_type",
		pkg + "small if input.intent.cost.amount_minor < 5\n\nmatch if not small": "cost.amount_minor",
		pkg + "is(r) if r == \"x\"\n\nmatch if is(input.intent.resource)":         "resource",
	} {
		if _, got := review(t, source); strings.Join(got.Fields, " ") != want {
			t.Errorf("Fields = %q, want %q\n%s", got.Fields, want, source)
		}
	}
}
