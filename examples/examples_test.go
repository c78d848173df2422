package examples_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/engine"
	"writ/examples"
	"writ/rego"
)

// TestCases decides every example offline. `writ demo` decides them over HTTP.
func TestCases(t *testing.T) {
	set, err := examples.Load()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(set.Cases); got < 40 {
		t.Errorf("there are %d cases, want at least 40", got)
	}
	if got := len(set.Policies); got < 5 {
		t.Errorf("there are %d policies, want at least 5", got)
	}
	options := engine.Options{CompileRego: rego.CompileCondition}
	for _, r := range set.Rules {
		if err := engine.ValidateRule(r, options); err != nil {
			t.Errorf("rule %s: %v", r.ID, err)
		}
	}
	rules := engine.CompileRules(set.Rules, options)
	for i, c := range set.Cases {
		t.Run(c.Policy+"/"+c.Intent, func(t *testing.T) {
			p, err := engine.CompilePolicy(set.Policies[c.Policy])
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Intents[i].Validate(); err != nil {
				t.Fatal(err)
			}
			res := engine.Evaluate(p, rules, &engine.Input{Intent: set.Intents[i]})
			var codes []engine.Code
			for _, f := range res.Findings {
				codes = append(codes, f.Code)
			}
			if res.Decision != c.Want {
				t.Errorf("Evaluate = %v, want %v: %q", res.Decision, c.Want, res.Reasons())
			}
			if diff := cmp.Diff(c.Codes, codes); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
		})
	}
}
