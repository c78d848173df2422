package engine_test

import (
	"testing"
	"time"

	"writ.example/writ/engine"
)

// TestFinding_SaysWhyAsData checks the cause, the field and the rule's revision of findings. No finding
// has a value of the intent.
func TestFinding_SaysWhyAsData(t *testing.T) {
	rule := func(cond, decision string) []engine.Rule {
		return []engine.Rule{{ID: "r", Name: "n", Condition: cond, Action: `{"decision":"` + decision + `"}`, IsActive: true,
			Stored: engine.Stored{Revision: 7}}}
	}
	cap500, in := int64(500), func(metadata map[string]string) *engine.Intent {
		return &engine.Intent{AgentID: "a", ActionType: "deploy", Resource: "prod", Metadata: metadata}
	}
	dear := in(nil)
	dear.Cost = &engine.Cost{AmountMinor: 501, Currency: "EUR"}
	env := map[string]string{"env": "not-a-number", "action": "deploy"}
	for _, tt := range []struct {
		name   string
		rules  []engine.Rule
		intent *engine.Intent
		want   engine.Finding
	}{
		{"a check", nil, dear, engine.Finding{Code: engine.CodeCostExceeded, Field: "policy.max_cost_minor"}},
		{"a match", rule(`{"metadata.env":"not-a-number"}`, "deny"), in(env), engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7}},
		{"a match of an absent key", rule(`{"metadata.none":{"$exists":false}}`, "deny"), in(env), engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7}},
		{"no decimal in a match object", rule(`{"metadata.env":{"$gt":5}}`, "deny"), in(env),
			engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7, Cause: "not_decimal", Field: "metadata.env"}},
		{"no decimal in an element", rule(`{"metadata.env":{"$some":{"$gt":5}}}`, "deny"), in(env),
			engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7, Cause: "not_decimal", Field: "metadata.env"}},
		{"no decimal in CEL", rule(`{"cel":"decimal_compare(intent.metadata.env, '5') > 0"}`, "approval_required"), in(env),
			engine.Finding{Code: engine.CodeRuleApprovalRequired, RuleID: "r", RuleRevision: 7, Cause: "not_decimal", Field: "metadata.env"}},
		{"a missing key", rule(`{"cel":"intent.metadata.freight == 'x'"}`, "deny"), in(env),
			engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7, Cause: "missing", Field: "metadata.freight"}},
		{"two missing keys", rule(`{"cel":"intent.metadata.b == intent.metadata.a"}`, "deny"), in(env),
			engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7, Cause: "missing", Field: "metadata.b"}},
		{"a computed key", rule(`{"cel":"intent.metadata[intent.action_type] == intent.metadata.env"}`, "deny"), in(env),
			engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7, Cause: "missing"}},
		{"no cost", rule(`{"cel":"intent.cost.amount_minor > 5"}`, "deny"), in(env),
			engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7, Cause: "missing", Field: "cost"}},
		{"a function", rule(`{"cel":"int(intent.metadata.env) > 5"}`, "deny"), in(env),
			engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7, Cause: "function"}},
		{"a broken rule", rule(`{"metadata.env":{"$nope":1}}`, "deny"), in(env),
			engine.Finding{Code: engine.CodeRuleDeny, RuleID: "r", RuleRevision: 7, Cause: "broken"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := engine.CompilePolicy(&engine.ActionPolicy{
				PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20", Version: 1, OrganizationID: "acme", AgentID: "a", AllowedActionTypes: []string{"*"}, Status: engine.StatusActive,
				MaxCostMinor: &cap500, UpdatedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
			})
			if err != nil {
				t.Fatal(err)
			}
			got := engine.Evaluate(p, engine.CompileRules(tt.rules, engine.Options{}), &engine.Input{Intent: tt.intent})
			if len(got.Findings) != 1 {
				t.Fatalf("findings = %+v, want one", got.Findings)
			}
			f := got.Findings[0]
			f.Outcome, f.Reason = 0, ""
			if f != tt.want {
				t.Errorf("finding = %+v, want %+v", f, tt.want)
			}
		})
	}
}

// TestFinding_OfARuleThatIsReused checks that the finding of a rule whose text is unchanged has the
// revision of its last write.
func TestFinding_OfARuleThatIsReused(t *testing.T) {
	rule := engine.Rule{ID: "r", Name: "n", Condition: `{"cel":"intent.metadata.x == 'y'"}`, Action: `{"decision":"deny"}`, IsActive: true, Stored: engine.Stored{Revision: 1}}
	first := engine.CompileRules([]engine.Rule{rule}, engine.Options{})
	rule.Revision, rule.Priority = 2, 9
	second := first.Update([]engine.Rule{rule}, engine.Options{})
	for set, want := range map[*engine.RuleSet]int64{first: 1, second: 2} {
		if got := set.Rules()[0].Finding().RuleRevision; got != want {
			t.Errorf("the finding has revision %d, want %d", got, want)
		}
	}
}

// TestFinding_NamedOfACore checks that the code of a core's finding is its own, unless a secret was
// removed from it.
func TestFinding_NamedOfACore(t *testing.T) {
	for reason, want := range map[string]string{
		"my.code_1: no": "my.code_1", "[redacted:card-number]: no": "core.finding", "my.[x]: no": "core.finding",
	} {
		f := engine.Finding{Code: engine.CodeCoreFinding, Reason: reason}
		if got := f.Named(); got != want {
			t.Errorf("the code of %q = %q, want %q", reason, got, want)
		}
	}
	if f := (engine.Finding{Code: engine.CodeRuleDeny, Reason: "x: y"}); f.Named() != "rule.deny" {
		t.Errorf("Named() = %q", f.Named())
	}
}
