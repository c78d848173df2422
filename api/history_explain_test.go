package api

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage/ledger"
)

// explain returns a row of the history together with its explanation.
func (h *harness) explain(token, decisionID string) (row explained) {
	h.t.Helper()
	h.do("GET", "/v1/authorizations/"+decisionID+"?explain=true", token, nil).wantStatus(http.StatusOK).into(&row)
	return row
}

// TestAuthorization_Explained checks that a row has either an exact explanation or none.
func TestAuthorization_Explained(t *testing.T) {
	h := start(t)
	h.register(acme)
	rule := h.rule(acme, `{"cel":"intent.action_type == 'deploy' && !has(intent.cost)"}`, `{"decision":"approval_required"}`)
	got := read[result](h.evaluate(acme, intent(obj{"resource": "k8s/prod/web"})).wantStatus(http.StatusOK))
	row := h.explain(h.operator(acme), got.DecisionID)
	x := row.Explanation
	if x == nil || row.Unexplained != "" || row.DecisionID != got.DecisionID || x.Decision != engine.ApprovalRequired {
		t.Fatalf("the row is %+v with %+v, want it explained", row, x)
	}
	if len(x.Checks) == 0 || len(x.Rules) != 1 || !x.Rules[0].Decides || len(x.Rules[0].Leaves) != 2 || x.Rules[0].Leaves[0].Result != "true" {
		t.Errorf("the explanation is %+v, want the checks and the rule with its leaves", x)
	}
	if rows := h.history(acme); len(rows) != 1 {
		t.Errorf("there are %d rows, want one", len(rows))
	}

	h.do("PATCH", "/v1/rules/"+rule, h.operator(acme), obj{"priority": 7, "condition": `{"action_type":"none"}`}).wantStatus(http.StatusOK)
	if later := h.explain(h.operator(acme), got.DecisionID); cmp.Diff(row, later) != "" {
		t.Errorf("after a change of the rules the row is %+v, want it explained by the rule as it was", later)
	}
}

// TestAuthorization_ExplainsEachLineOfRego checks that a row and a simulation mark each line of a
// condition in Rego.
func TestAuthorization_ExplainsEachLineOfRego(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.rule(acme, `{"rego":"package team\n\nmatch if {\n\tinput.intent.action_type == \"deploy\"\n\tinput.intent.cost.amount_minor > 5\n}\n"}`,
		`{"decision":"deny"}`)
	in := intent(obj{"resource": "k8s/prod/web"})
	got := read[result](h.evaluate(acme, in).wantStatus(http.StatusOK))
	tried := read[simulated](h.simulate(h.operator(acme), obj{"intent": in["intent"]}).wantStatus(http.StatusOK))
	want := []engine.ExplainedLeaf{
		{Text: "match if", Result: "undefined", Rule: true, Line: 3, Column: 1},
		{Text: `input.intent.action_type == "deploy"`, Result: "true", Line: 4, Column: 2},
		{Text: "input.intent.cost.amount_minor > 5", Result: "undefined", Line: 5, Column: 2},
	}
	for what, x := range map[string]*engine.Explanation{
		"row": h.explain(h.operator(acme), got.DecisionID).Explanation, "simulation": tried.Explanation,
	} {
		if x == nil || len(x.Rules) != 1 || x.Rules[0].Because == nil || *x.Rules[0].Because != 2 {
			t.Fatalf("the %s is explained by %+v, want one rule because of its last line", what, x)
		}
		if diff := cmp.Diff(want, x.Rules[0].Leaves); diff != "" {
			t.Errorf("the lines of the %s (-want +got):\n%s", what, diff)
		}
	}
}

// TestAuthorization_ExplainedByHalfAnIntent checks that an explanation names what the row lacks of the
// intent, and explains the rest.
func TestAuthorization_ExplainedByHalfAnIntent(t *testing.T) {
	h := start(t)
	h.register(acme)
	token := h.operator(acme)
	h.rule(acme, `{"metadata.freight":"heavy","action_type":"deploy"}`, `{"decision":"approval_required"}`)
	h.rule(acme, `{"cel":"has(intent.metadata.env) && intent.action_type == 'deploy'"}`, `{"decision":"deny"}`)
	h.rule(acme, `{"rego":"input.intent.metadata.freight == \"light\""}`, `{"decision":"deny"}`)
	for name, tt := range map[string]struct {
		change  obj
		unknown []string
		rules   []string // the results, and those of the leaves
	}{
		"a value that decides": {obj{"metadata": obj{"freight": "heavy"}}, []string{"metadata.freight"},
			[]string{"no_match false true", "no_match", "match unknown true"}},
		"a value that does not": {obj{"metadata": obj{"freight": "x"}}, []string{"metadata.freight"},
			[]string{"no_match false true", "no_match", "no_match unknown true"}},
		"the key alone": {obj{"metadata": obj{"env": "x"}}, nil, []string{"match true true", "not_asked", "not_asked"}},
		"a query": {obj{"resource": "https://example.com/a?b=c", "metadata": obj{}}, []string{"resource"},
			[]string{"no_match false true", "no_match", "no_match false true"}},
	} {
		got := read[result](h.evaluate(acme, intent(tt.change)).wantStatus(http.StatusOK))
		row := h.explain(token, got.DecisionID)
		x := row.Explanation
		if x == nil {
			t.Errorf("%s: unexplained: %s", name, row.Unexplained)
			continue
		}
		var rules []string
		for _, r := range x.Rules {
			said := r.Result
			for _, l := range r.Leaves {
				if l.Line == 0 {
					said += " " + l.Result
				}
			}
			rules = append(rules, said)
		}
		if x.Decision != row.Decision || !slices.Equal(x.Unknown, tt.unknown) || !slices.Equal(rules, tt.rules) {
			t.Errorf("%s is explained by %s, %q, %q; want %s, %q, %q", name, x.Decision, x.Unknown, rules, row.Decision, tt.unknown, tt.rules)
		}
	}
}

// TestDecision_Audit_WhatWasSentExplains checks the audit mode full. This mode explains decisions
// whose rows store the agent or the resource in another form. For the names of a registered agent,
// the row alone is enough. No mode stores the query of a resource.
func TestDecision_Audit_WhatWasSentExplains(t *testing.T) {
	both := []ledger.Mode{ledger.Minimal, ledger.Full}
	full := both[1:]
	for _, mode := range both {
		h := start(t, func(c *setup) { c.Audit = mode })
		h.register(acme)
		agent := read[engine.Agent](h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "x", "externalId": "Ext-9"}).wantStatus(http.StatusCreated))
		for what, tt := range map[string]struct {
			change    obj
			explained []ledger.Mode
		}{
			"the key":         {obj{"agent_id": "ext-9"}, both},
			"the external id": {obj{"agent_id": "Ext-9"}, both},
			"the id":          {obj{"agent_id": agent.ID}, both},
			"upper case":      {obj{"agent_id": "EXT-9"}, full},
			"full width":      {obj{"agent_id": "ｅxt-9"}, full},
			"no agent":        {obj{"agent_id": "Nobody"}, full},
			"a capital host":  {obj{"resource": "https://EXAMPLE.com/prod"}, full},
			"a query":         {obj{"resource": "https://example.com/prod?b=c"}, nil},
			"a long fraction": {obj{"issued_at": "2026-11-21T10:00:00.0000000001Z"}, full},
		} {
			got := read[result](h.evaluate(acme, intent(tt.change)).wantStatus(http.StatusOK))
			row := h.explain(h.operator(acme), got.DecisionID)
			want := slices.Contains(tt.explained, mode)
			if x := row.Explanation; x == nil || x.Decision != row.Decision || len(x.Unknown) > 0 && want {
				t.Errorf("%s in mode %s: %+v, unexplained: %s, want all of it known: %v", what, mode, x, row.Unexplained, want)
			}
		}
	}
}

// TestAuthorization_ExplainsTheKillSwitch checks that a decision about a disabled agent can still
// be explained after the agent was enabled again.
func TestAuthorization_ExplainsTheKillSwitch(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.disable(acme, "ci")
	got := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
	if x := h.explain(h.operator(acme), got.DecisionID).Explanation; x == nil || x.Decision != engine.Deny {
		t.Errorf("the explanation is %+v, want a deny", x)
	}
}

// TestAuthorization_ExplainedToThoseWhoMayRead checks that a credential gets the explanation only
// if it may read the policy and the rules.
func TestAuthorization_ExplainedToThoseWhoMayRead(t *testing.T) {
	h := start(t)
	h.register(acme)
	got := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
	path := "/v1/authorizations/" + got.DecisionID + "?explain=true"
	key, _ := h.key(acme, "history:read", "policy:read")
	h.do("GET", path, key, nil).wantProblem(http.StatusForbidden, codeInsufficientScope)
	key, _ = h.key(acme, "history:read", "policy:read", "rules:read")
	h.do("GET", path, key, nil).wantStatus(http.StatusOK)
	h.do("GET", path, h.operator(rival), nil).wantStatus(http.StatusNotFound)
	h.do("GET", "/v1/authorizations/"+got.DecisionID+"?explain=yes", h.operator(acme), nil).wantField("explain")
}

// TestAuthorization_ExplainedInASession checks that the explanation of a decision in a session has
// the session's checks, also if the session was closed since. If it was removed, the explanation names it
// as unknown.
func TestAuthorization_ExplainedInASession(t *testing.T) {
	h := start(t)
	h.register(acme)
	id := h.session(acme, obj{"allowed_resource_patterns": []string{"prod/**"}})
	for resource, want := range map[string]engine.Decision{"prod/web": engine.Allow, "stage/web": engine.Deny} {
		got := read[result](h.evaluate(acme, in(id, intent(obj{"resource": resource}))).wantStatus(http.StatusOK))
		row := h.explain(h.operator(acme), got.DecisionID)
		if row.Explanation == nil || row.Explanation.Decision != want {
			t.Errorf("%s in a session: %+v, unexplained: %s", resource, row.Explanation, row.Unexplained)
			continue
		}
		h.clock.advance(24 * time.Hour) // the session expires
		if row := h.explain(h.operator(acme), got.DecisionID); row.Explanation == nil {
			t.Errorf("%s in a session that expired since: %s", resource, row.Unexplained)
		}
		h.clock.advance(-24 * time.Hour)
	}
	got := read[result](h.evaluate(acme, in(id, intent())).wantStatus(http.StatusOK))
	before := h.explain(h.operator(acme), got.DecisionID)
	h.do("PATCH", "/v1/sessions/"+id, h.operator(acme), obj{"status": "closed"}).wantStatus(http.StatusOK)
	if diff := cmp.Diff(before, h.explain(h.operator(acme), got.DecisionID)); diff != "" || before.Explanation == nil {
		t.Errorf("the explanation of a row of a session that was closed since (-before +after):\n%s", diff)
	}
	h.clock.advance(72 * time.Hour)
	_, err := h.docs.SweepSessions(t.Context(), acme, h.clock.Now())
	must(t, err)
	if x := h.explain(h.operator(acme), got.DecisionID).Explanation; x == nil || !slices.Equal(x.Unknown, []string{"session"}) {
		t.Errorf("a row of a session that is no more is explained by %+v, want the session unknown", x)
	}
}
