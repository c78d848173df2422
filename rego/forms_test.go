package rego

import (
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// TestDecision_Rules_FourForms checks that a condition can be written in four forms, each a JSON
// document, and that all four decide alike.
func TestDecision_Rules_FourForms(t *testing.T) {
	for form, condition := range map[string]string{
		"1 match object": `{"action_type":"deploy","cost.amount_minor":{"$gt":5000}}`,
		"2 tree":         `{"all":[{"field":"action_type","op":"eq","value":"deploy"},{"fact":"cost.amount_minor","operator":"gt","value":5000}]}`,
		"3 cel":          `{"cel":"intent.action_type == 'deploy' && intent.cost.amount_minor > 5000"}`,
		"4 rego":         `{"rego":"input.intent.action_type == \"deploy\"\ninput.intent.cost.amount_minor > 5000"}`,
	} {
		t.Run(form, func(t *testing.T) {
			rule := sampleRule("r", "r", condition, `{"decision":"deny"}`)
			rules := engine.CompileRules([]engine.Rule{rule}, engine.Options{CompileRego: CompileCondition})
			policy := must.Get(engine.CompilePolicy(permissive()))(t)
			for amount, want := range map[int64]engine.Decision{5000: engine.Allow, 5001: engine.Deny} {
				in := sampleInput().Intent
				in.Cost = &engine.Cost{AmountMinor: amount, Currency: "EUR"}
				got := engine.Evaluate(policy, rules, &engine.Input{Intent: in, Agent: engine.AgentActive})
				if got.Decision != want || got.ConditionErrors.Total() != 0 {
					t.Errorf("Evaluate of %d = %v with %d errors, want %v", amount, got.Decision, got.ConditionErrors.Total(), want)
				}
			}
		})
	}
}
