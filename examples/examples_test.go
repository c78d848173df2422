package examples_test

import (
	"regexp"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
)

// TestLoad checks that there are enough examples, and that each case gives its codes. TestSuites
// decides the cases offline. `writ demo` decides them over HTTP.
func TestLoad(t *testing.T) {
	set := must.Get(examples.Load())(t)
	if len(set.Cases) < 40 || len(set.Policies) < 5 {
		t.Errorf("there are %d cases of %d policies, want at least 40 of 5", len(set.Cases), len(set.Policies))
	}
	for _, c := range set.Cases {
		if len(c.Codes) == 0 {
			t.Errorf("%s/%s says no codes", c.Policy, c.Name)
		}
	}
}

// TestRules_LiftNothingOnTheAgentsOwnWord changes the metadata of the examples. Metadata is the
// caller's own word, except keys that begin with "fact.". No metadata makes the decision on an
// example milder than it is without metadata.
func TestRules_LiftNothingOnTheAgentsOwnWord(t *testing.T) {
	set := must.Get(examples.Load())(t)
	keys, values := map[string]bool{}, map[string]bool{"": true, "0": true, "-1": true, "999999": true, "true": true}
	for _, in := range set.Intents {
		for key, value := range in.Metadata {
			keys[key], values[value] = true, true
		}
	}
	for _, r := range set.Rules { // a condition may compare with any word in it
		for _, word := range regexp.MustCompile(`[\w-]+`).FindAllString(r.Condition, -1) {
			values[word] = true
		}
		for _, key := range regexp.MustCompile(`metadata\.([\w.]+)`).FindAllStringSubmatch(r.Condition, -1) {
			keys[key[1]] = true
		}
	}
	rules := engine.CompileRules(set.Rules, engine.Options{CompileRego: rego.CompileCondition})
	for i, c := range set.Cases {
		p := must.Get(engine.CompilePolicy(set.Policies[c.Policy]))(t)
		in := *set.Intents[i]
		in.Metadata = nil
		silent := engine.Evaluate(p, rules, &engine.Input{Intent: &in}).Decision
		for key := range keys {
			for value := range values {
				in.Metadata = map[string]string{key: value}
				if got := engine.Evaluate(p, rules, &engine.Input{Intent: &in}).Decision; got < silent {
					t.Errorf("%s/%s = %v, and %v if the agent says %s=%q", c.Policy, c.Name, silent, got, key, value)
				}
			}
		}
	}
}
