package rego

import (
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// TestLower_NamesOfModulesStay checks that the files of rules in Rego have the same names and
// packages after a rule's priority was raised and another rule was added.
func TestLower_NamesOfModulesStay(t *testing.T) {
	named := func(rules []engine.Rule) (all []string) {
		for _, f := range must.Get(Lower(samplePolicy(), rules, nil))(t)[1:] {
			pkg, _ := PackageOf(f.Source)
			all = append(all, f.Name+" "+pkg)
		}
		slices.Sort(all)
		return all
	}
	before := named(sampleRules())
	rules := sampleRules()
	for i := range rules {
		rules[i].Priority = -rules[i].Priority
	}
	first := rules[0]
	first.ID, first.Name, first.Priority, first.Condition = "first", "First", 1000, `{"action_type":"other"}`
	if after := named(append(rules, first)); len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("the modules are %q, and %q after the priorities changed", before, after)
	}
	for i := range rules {
		rules[i].ID = ""
	}
	byName := rules[slices.IndexFunc(rules, func(r engine.Rule) bool { return strings.Contains(r.Condition, "rego") })]
	byName.Name = "Nobody: Deploys  (twice)"
	if got := named([]engine.Rule{byName}); !strings.HasPrefix(got[0], "rule_nobody_deploys_twice_.rego ") {
		t.Errorf("the module of the rule %q without an id is %q", byName.Name, got)
	}
	again := byName
	again.Name = "nobody deploys twice-"
	_, err := Lower(samplePolicy(), []engine.Rule{byName, again}, nil)
	if err == nil || !strings.Contains(err.Error(), "would both be the module rule_nobody_deploys_twice_: give each an id") {
		t.Errorf("Lower of two rules with one name = %v, want an error", err)
	}
}

// TestRunTests_Aliases checks that tests can name the policy and each rule without their ids and
// places. Two rules with one name, and a name that no rule has, are errors.
func TestRunTests_Aliases(t *testing.T) {
	rules := sampleRules()
	for i := range rules {
		rules[i].Name = "Rule: " + string(rune('A'+i))
		if i == 0 {
			rules[i].Condition = `{"action_type":"deploy"}`
		}
	}
	results := must.Get(runTestsOf(t, rules, `
test_policy if data.writ.policy.decision == policy.decision with input as data.intents.deploy
test_denied if data.writ.policy.decision == "deny" with input as data.intents.killed
test_not_all if not data.writ.policy.allow with input as data.intents.deploy
test_rule if data.writ.rules.rule_a.match with input as data.intents.deploy
test_other if not data.writ.rules.rule_a.match with input as object.union(data.intents.deploy, {"intent": {"action_type": "x"}})
`))(t)
	if len(results) != 5 {
		t.Errorf("%d tests ran, want 5", len(results))
	}
	for _, r := range results {
		if r.Outcome != TestPassed {
			t.Errorf("%s: %s %s", r.Name, r.Outcome, r.Message)
		}
	}
	if _, err := runTestsOf(t, rules, "test_x if not data.writ.rules.rule_z.match"); err == nil {
		t.Error("a test of a rule that does not exist runs")
	}
	rules[1].Name = "rule  a"
	_, err := runTestsOf(t, rules, "test_x if true")
	if err == nil || !strings.Contains(err.Error(), "would both be data.writ.rules.rule_a: give one of them another name") {
		t.Errorf("RunTests of two rules with one name = %v, want an error", err)
	}
}
