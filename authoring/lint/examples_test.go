package lint_test

import (
	"testing"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
)

const policyID = "0b9f7f2e-5a57-4a5e-8f27-6a3f3f0f9a01"

func TestExamples_EarnNoWarning(t *testing.T) {
	set := must.Get(examples.Load())(t)
	for name, p := range set.Policies {
		for _, w := range lint.Policy(p) {
			t.Errorf("%s: %+v", name, w)
		}
	}
	for _, w := range lint.Rules(compile(t, set.Rules)) {
		t.Errorf("%+v", w)
	}
}

func compile(t testing.TB, rules []engine.Rule) []*engine.CompiledRule {
	t.Helper()
	compiled := make([]*engine.CompiledRule, len(rules))
	for i, r := range rules {
		c, err := engine.CompileRule(r, engine.Options{CompileRego: rego.CompileCondition})
		if err != nil {
			t.Fatalf("rules[%d] %s: %v", i, r.Condition, err)
		}
		compiled[i] = c
	}
	return compiled
}
