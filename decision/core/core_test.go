package core

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

func TestDecision_ExternalEvaluationCore_InputHoldsPolicyIntentAgentRules(t *testing.T) {
	rule := engine.Rule{
		ID: "r1", Name: "n", Condition: `{"action_type":"deploy"}`, Action: `{"decision":"deny"}`, Priority: 7, IsActive: true,
	}
	idle := rule
	idle.ID, idle.IsActive = "r2", false
	var got map[string]map[string]any
	var asked *http.Request
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err != nil {
			t.Errorf("reading the question: %v", err)
		}
		constant(http.StatusOK, allowed)(w, r)
	}, func(c *Config) { c.Token, c.Rules = "s3cret", true })
	set := testSet(t, idle, rule)
	in := testInput()
	in.Agent, in.Usage.Exceeded, in.RequireRegistered = engine.AgentDisabled, true, true
	in.Approval = &engine.Approval{ID: "a1", Status: "approved"}
	if _, err := c.Evaluate(t.Context(), set, in); err != nil {
		t.Fatalf("Evaluate = %v", err)
	}
	want := map[string]map[string]any{"input": {
		"policy": map[string]any{
			"policy_id": "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20", "version": 1.0, "organization_id": "acme", "agent_id": "*",
			"allowed_action_types": []any{"deploy"}, "status": "active", "updated_at": "2026-11-01T09:00:00Z",
		},
		"intent": map[string]any{
			"intent_id": in.Intent.IntentID, "policy_id": in.Intent.PolicyID, "agent_id": "ci", "action_type": "deploy",
			"resource": "prod//web", "metadata": map[string]any{"env": "prod"}, "issued_at": "2026-11-21T10:00:00Z",
		},
		"decided_at": "2026-11-21T10:00:01.25Z",
		"agent": map[string]any{"id": "ci", "status": "disabled",
			"called": []any{"ci"}, "names": []any{"ci"}},
		"rules": []any{map[string]any{
			"id": "r1", "name": "n", "condition": rule.Condition, "action": rule.Action, "priority": 7.0, "isActive": true,
			"createdAt": "0001-01-01T00:00:00Z", "updatedAt": "0001-01-01T00:00:00Z",
		}},
		"readings": map[string]any{
			"blocked": []any{
				map[string]any{"text": "prod//web", "readers": []any{"raw"}},
				map[string]any{"text": "prod/web", "readers": []any{"posix"}},
			},
			"allowed": []any{map[string]any{"text": "prod/web", "readers": []any{"posix"}}},
			"stops":   "",
		},
		"values": map[string]any{"env": map[string]any{
			"elements": []any{map[string]any{"text": "prod", "addresses": []any{}, "others": []any{"prod"}, "blocked": []any{"prod"}}},
			"sizes":    []any{1.0}, "address": []any{}, "blocked": []any{"prod", "prod"},
		}},
		"digest":                    must.Get(engine.Digest(set.Policy.Document(), set.Rules))(t),
		"organization":              map[string]any{"stopped": false},
		"usage":                     map[string]any{"exceeded": true},
		"require_registered_agents": true,
		"approval":                  map[string]any{"approval_id": "a1", "status": "approved"},
		"rules_revision":            57.0,
		"semantics":                 float64(engine.Semantics),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the question (-want +got):\n%s", diff)
	}
	if got := asked.Method + " " + asked.URL.String(); got != "POST /v1/data/writ/core/result?strict-builtin-errors=true" {
		t.Errorf("asked %s", got)
	}
	if got := asked.Header.Get("Authorization"); got != "Bearer s3cret" {
		t.Errorf("Authorization = %q, want the token", got)
	}
}

func TestEvaluate_Decides(t *testing.T) {
	for name, tc := range map[string]struct {
		decision, reasons string
		want              engine.Decision
		codes             []engine.Code
	}{
		"allow":          {"allow", `"policy.allowed: yes"`, engine.Allow, []engine.Code{engine.CodePolicyAllowed}},
		"allowed by one": {"allow", `"rule.allow: yes"`, engine.Allow, []engine.Code{engine.CodeRuleAllow}},
		"approval":       {"approval_required", `"agent.mismatch: another"`, engine.ApprovalRequired, []engine.Code{engine.CodeAgentMismatch}},
		"deny":           {"deny", `"resource.blocked: no", "rule.allow: yes"`, engine.Deny, []engine.Code{engine.CodeResourceBlocked, engine.CodeRuleAllow}},
		"its own code":   {"deny", `"budget.team_7: spent"`, engine.Deny, []engine.Code{engine.CodeCoreFinding}},
		"its own yes":    {"allow", `"ok: why not"`, engine.Allow, []engine.Code{engine.CodeCoreFinding}},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, constant(http.StatusOK, `{"decision_id":"x","result":`+verdictOf(tc.decision, tc.reasons)+`}`))
			got, err := c.decide(t)
			if err != nil {
				t.Fatalf("Evaluate = %v", err)
			}
			var codes []engine.Code
			for _, f := range got.Findings {
				codes = append(codes, f.Code)
			}
			if diff := cmp.Diff(tc.codes, codes); got.Decision != tc.want || diff != "" {
				t.Errorf("Evaluate = %v %v, want %v %v", got.Decision, codes, tc.want, tc.codes)
			}
			if want := "[" + strings.ReplaceAll(tc.reasons, `", "`, `","`) + "]"; asJSON(t, got.Reasons()) != want {
				t.Errorf("reasons = %q, want %s", got.Reasons(), want)
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	out := must.Get(json.Marshal(v))(t)
	return string(out)
}

func TestNew_RefusesWhatCannotWorkAndQuotesNothing(t *testing.T) {
	good := "http://opa:8181/v1/data/writ/core/result"
	for name, cfg := range map[string]Config{
		"no URL":           {},
		"no scheme":        {URL: "canary:8181/v1/data"},
		"another scheme":   {URL: "ftp://canary/v1/data"},
		"no host":          {URL: "http:///canary"},
		"broken":           {URL: "http://canary:x y/"},
		"credentials":      {URL: "http://canary:canary@opa/v1/data"},
		"a query":          {URL: good + "?canary"},
		"an empty query":   {URL: good + "?"},
		"a fragment":       {URL: good + "#canary"},
		"negative timeout": {URL: good, Timeout: -1},
		"token of lines":   {URL: good, Token: "canary\r\nX: y"},
	} {
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: New = %v, want an error that quotes nothing", name, err)
		}
	}
}

func TestEvaluate_NothingToDecide(t *testing.T) {
	c := serve(t, constant(http.StatusOK, allowed))
	in := testInput()
	in.Intent.Resource = "a\x00b"
	for name, in := range map[string]*engine.Input{"nil": nil, "no intent": {}, "unreadable": in} {
		if got, err := c.Evaluate(t.Context(), testSet(t), in); err == nil {
			t.Errorf("%s: Evaluate = %v, want an error", name, got)
		}
	}
	if got, err := c.Evaluate(t.Context(), engine.Set{}, testInput()); err == nil {
		t.Errorf("no policy: Evaluate = %v, want an error", got)
	}
}

// wantReason checks that err is an *Error with a given reason, and that got is empty.
func wantReason(t *testing.T, got engine.Result, err error, want Reason) *Error {
	t.Helper()
	var failed *Error
	if !errors.As(err, &failed) || failed.Reason != want {
		t.Fatalf("Evaluate = %v, %v, want an *Error for %s", got, err, want)
	}
	if got.Decision != 0 || len(got.Findings) != 0 {
		t.Errorf("Evaluate = %+v beside an error, want nothing", got)
	}
	if silent := want == Unreachable || want == Timeout || want == Open; failed.Unanswered() != silent || silent && failed.RetryAfter() <= 0 {
		t.Errorf("%v: Unanswered = %t, RetryAfter = %v, want %t and a time if it is", err, failed.Unanswered(), failed.RetryAfter(), silent)
	}
	return failed
}
