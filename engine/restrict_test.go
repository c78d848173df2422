package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
)

func TestRestrict(t *testing.T) {
	yes := engine.Result{Decision: engine.Allow, Findings: []engine.Finding{
		{Code: engine.CodePolicyAllowed, Outcome: engine.Allow, Reason: "policy.allowed: yes"},
	}}
	asks := engine.Result{Decision: engine.ApprovalRequired, Findings: []engine.Finding{
		{Code: engine.CodeAgentMismatch, Outcome: engine.ApprovalRequired, Reason: "agent.mismatch: another"},
		{Code: engine.CodeRuleAllow, Outcome: engine.Allow, Reason: "rule.allow: fine"},
	}}
	for name, tc := range map[string]struct {
		res    engine.Result
		status engine.Status
		change func(*engine.Input)
		want   engine.Decision
		codes  []engine.Code
	}{
		"nothing to add": {yes, engine.StatusActive, func(*engine.Input) {}, engine.Allow, []engine.Code{engine.CodePolicyAllowed}},
		"stopped": {yes, engine.StatusActive, func(in *engine.Input) { in.Stopped = true }, engine.Deny,
			[]engine.Code{engine.CodeOrganizationStopped}},
		"kill switch": {yes, engine.StatusActive, func(in *engine.Input) { in.Agent = engine.AgentDisabled }, engine.Deny,
			[]engine.Code{engine.CodeAgentDisabled}},
		"unheard-of status": {yes, engine.StatusActive, func(in *engine.Input) { in.Agent = "asleep" }, engine.Deny,
			[]engine.Code{engine.CodeAgentDisabled}},
		"registration": {yes, engine.StatusActive, func(in *engine.Input) { in.Agent, in.RequireRegistered = engine.AgentUnregistered, true }, engine.Deny,
			[]engine.Code{engine.CodeAgentUnregistered}},
		"suspended": {yes, engine.StatusSuspended, func(*engine.Input) {}, engine.Deny, []engine.Code{engine.CodePolicyInactive}},
		"meter, in check order": {asks, engine.StatusActive, func(in *engine.Input) { in.Usage.Exceeded = true }, engine.Deny,
			[]engine.Code{engine.CodeAgentMismatch, engine.CodeUsageLimit, engine.CodeRuleAllow}},
		"all": {yes, engine.StatusRevoked, func(in *engine.Input) { in.Agent, in.Usage.Exceeded, in.Stopped = engine.AgentDisabled, true, true }, engine.Deny,
			[]engine.Code{engine.CodeOrganizationStopped, engine.CodePolicyInactive, engine.CodeAgentDisabled, engine.CodeUsageLimit}},
	} {
		t.Run(name, func(t *testing.T) {
			doc := corpus.ReferencePolicy()
			doc.Status = tc.status
			in := allowedInput()
			tc.change(in)
			before := len(tc.res.Findings)
			got := mustCompile(t, doc).Restrict(tc.res, in)
			var codes []engine.Code
			for _, f := range got.Findings {
				codes = append(codes, f.Code)
			}
			if diff := cmp.Diff(tc.codes, codes); got.Decision != tc.want || diff != "" {
				t.Errorf("Restrict = %v %v, want %v %v", got.Decision, codes, tc.want, tc.codes)
			}
			if len(tc.res.Findings) != before {
				t.Error("Restrict changed what it was given")
			}
		})
	}
}

func TestRestrict_DeniesWhereThereIsNothingToDecide(t *testing.T) {
	yes := engine.Result{Decision: engine.Allow, Findings: []engine.Finding{{Code: engine.CodePolicyAllowed, Outcome: engine.Allow}}}
	var none *engine.Policy
	p := mustCompile(t, corpus.ReferencePolicy())
	for name, got := range map[string]engine.Result{
		"no policy": none.Restrict(yes, allowedInput()), "no input": p.Restrict(yes, nil), "no intent": p.Restrict(yes, &engine.Input{}),
	} {
		if got.Decision != engine.Deny {
			t.Errorf("%s: Restrict = %v, want deny", name, got)
		}
	}
}

// TestCode_Outcome checks that Outcome returns the outcome that Evaluate gives to a finding with
// that code.
func TestCode_Outcome(t *testing.T) {
	doc := corpus.ReferencePolicy()
	for _, c := range engine.Checks(doc) {
		if got, ok := c.Code.Outcome(); !ok || got != c.Outcome {
			t.Errorf("%s.Outcome = %v, %v, want %v", c.Code, got, ok, c.Outcome)
		}
	}
	for code, want := range map[engine.Code]engine.Decision{
		engine.CodeRuleAllow: engine.Allow, engine.CodePolicyAllowed: engine.Allow,
		engine.CodeRuleApprovalRequired: engine.ApprovalRequired, engine.CodeRuleDeny: engine.Deny, engine.CodeCheckError: engine.Deny,
	} {
		if got, ok := code.Outcome(); !ok || got != want {
			t.Errorf("%s.Outcome = %v, %v, want %v", code, got, ok, want)
		}
	}
	for _, code := range []engine.Code{"", "budget.spent", engine.CodeCoreFinding} {
		if got, ok := code.Outcome(); ok {
			t.Errorf("%q.Outcome = %v, want none", code, got)
		}
	}
}
