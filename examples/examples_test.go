package examples_test

import (
	"regexp"
	"slices"
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
		t.Run(c.Policy+"/"+c.Name, func(t *testing.T) {
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
			slices.Sort(codes)
			if diff := cmp.Diff(c.Codes, codes); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRules_LiftNothingOnTheAgentsOwnWord: metadata is what the caller says of
// itself, except keys that begin with fact. Whatever it says, an example gets no
// milder decision than the one it gets without a word.
func TestRules_LiftNothingOnTheAgentsOwnWord(t *testing.T) {
	set, err := examples.Load()
	if err != nil {
		t.Fatal(err)
	}
	keys, values := map[string]bool{}, map[string]bool{"": true, "0": true, "-1": true, "999999": true, "true": true}
	for _, in := range set.Intents {
		for key, value := range in.Metadata {
			keys[key], values[value] = true, true
		}
	}
	for _, r := range set.Rules { // every word of a condition may be what it asks for
		for _, word := range regexp.MustCompile(`[\w-]+`).FindAllString(r.Condition, -1) {
			values[word] = true
		}
		for _, key := range regexp.MustCompile(`metadata\.([\w.]+)`).FindAllStringSubmatch(r.Condition, -1) {
			keys[key[1]] = true
		}
	}
	rules := engine.CompileRules(set.Rules, engine.Options{CompileRego: rego.CompileCondition})
	for i, c := range set.Cases {
		p, err := engine.CompilePolicy(set.Policies[c.Policy])
		if err != nil {
			t.Fatal(err)
		}
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
