// Package walk has one test for each task. Package newcomer counts the files in the coverage of a
// test.
package walk

import (
	"testing"
	"time"

	"writ.example/writ/engine"
)

var policy = engine.ActionPolicy{
	PolicyID: "0b9f7f2e-5a57-4a5e-8f27-6a3f3f0f9a01", Version: 1, OrganizationID: "org", AgentID: "*", Status: engine.StatusActive,
	UpdatedAt:          time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	AllowedActionTypes: []string{"deploy", "sql.*"}, BlockedResourcePatterns: []string{"vault/**"}, AllowedResourcePatterns: []string{"**"},
}

var rule = engine.Rule{
	ID: "r", Name: "r", IsActive: true, Action: `{"decision":"deny"}`,
	Condition: `{"action_type":"deploy","cost.amount_minor":{"$gt":5000},"metadata.env":{"$in":["prod","dr"]}}`,
}

// TestCompileRule compiles one rule.
func TestCompileRule(t *testing.T) {
	if _, err := engine.CompileRule(rule, engine.Options{}); err != nil {
		t.Fatal(err)
	}
}

// The compiled set and the validated intent exist before a task begins. TestNothing measures the
// code that runs while the package is initialised, so that it can be subtracted.
var (
	set         = engine.CompileRules([]engine.Rule{rule}, engine.Options{})
	compiled, _ = engine.CompilePolicy(&policy)
	intent      = &engine.Intent{
		IntentID: "6f1c1f0e-33a5-4b1e-9c0a-0d7f0f6f3b11", PolicyID: policy.PolicyID, AgentID: "ci", ActionType: "deploy", Resource: "prod/web",
		Cost: &engine.Cost{AmountMinor: 6000, Currency: "EUR"}, Metadata: map[string]string{"env": "prod"}, IssuedAt: "2026-01-31T12:00:00Z",
	}
	_ = intent.Validate()
)

// TestEvaluate evaluates one intent.
func TestEvaluate(t *testing.T) {
	res := engine.Evaluate(compiled, set, &engine.Input{Intent: intent, Agent: engine.AgentActive})
	if res.Decision != engine.Deny || res.Findings[0].RuleID != rule.ID {
		t.Fatalf("Evaluate = %v, want the rule's deny", res.Reasons())
	}
}

// TestNothing measures the code that runs before any test.
func TestNothing(*testing.T) {}
