package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/apikey"
	"writ.example/writ/storage"
)

// mint makes a key with the credential token. body describes the new key.
func (h *harness) mint(token string, body obj) *reply {
	h.t.Helper()
	if body["name"] == nil {
		body["name"] = "test"
	}
	return h.do("POST", "/v1/tokens", token, body)
}

// bound makes a key of acme that is bound to agents, an id or a glob.
func (h *harness) bound(agents string, scopes ...string) (key, id string) {
	h.t.Helper()
	made := read[tokenSecret](h.mint(h.operator(acme), obj{"agent_id": agents, "scopes": scopes}).wantStatus(http.StatusCreated))
	return made.Token, made.ID
}

// TestDecision_Credentials_ABoundKeyEvaluatesForItsAgentsOnly checks "POST /v1/tokens also takes agent_id (an id or a
// glob) and policy_id: such a key evaluates for those agents only (403 agent_not_bound otherwise)" and "key bindings …
// compare exactly".
func TestDecision_Credentials_ABoundKeyEvaluatesForItsAgentsOnly(t *testing.T) {
	h := start(t)
	h.register(acme)
	for _, tc := range []struct {
		agents  string
		yes, no []string
	}{
		{"ci", []string{"ci"}, []string{"CI", "ｃi", "ci2", "cd", "team-a/ci"}},
		{"team-a/*", []string{"team-a/ci", "team-a/cd"}, []string{"ci", "team-b/ci", "Team-A/ci", "team-a/x/y"}},
		{"*", []string{"ci", "team-a/ci"}, nil},
		{"ann@corp.example", []string{"ann@corp.example"}, []string{"bob@corp.example"}},
	} {
		key, _ := h.bound(tc.agents, "policy:evaluate")
		for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
			for _, agent := range tc.yes {
				h.do("POST", path, key, intent(obj{"agent_id": agent})).wantStatus(http.StatusOK)
			}
			for _, agent := range tc.no {
				body := intent(obj{"agent_id": agent})
				before := len(h.history(acme))
				h.do("POST", path, key, body).wantProblem(http.StatusForbidden, codeAgentNotBound)
				h.wantRows(acme, before)
				h.evaluate(acme, body).wantStatus(http.StatusOK) // the refusal has not used up the intent id
				h.do("POST", path, key, body).wantProblem(http.StatusForbidden, codeAgentNotBound)
			}
		}
	}
}

func TestTokens_ABindingIsShown(t *testing.T) {
	h := start(t)
	h.register(acme)
	made := read[tokenSecret](h.mint(h.operator(acme), obj{"agent_id": "team-a/*", "policy_id": strings.ToUpper(policyID)}).wantStatus(http.StatusCreated))
	rows := read[[]tokenSummary](h.do("GET", "/v1/tokens", h.operator(acme), nil).wantStatus(http.StatusOK))
	want := tokenSummary{
		ID: made.ID, Name: "test", Token: apikey.Mask(made.ID, apikey.Hint(made.Token)), Scopes: []string{"policy:evaluate"},
		CreatedAt: h.clock.Now(), AgentID: "team-a/*", PolicyID: policyID,
	}
	same(t, "GET", []tokenSummary{want}, rows)
}

func TestTokens_InvalidBindings(t *testing.T) {
	h := start(t)
	h.register(rival)
	for name, tc := range map[string]struct {
		body  obj
		field string
	}{
		"empty agent":                    {obj{"agent_id": ""}, "agent_id"},
		"null agent":                     {obj{"agent_id": nil}, "agent_id"},
		"broken glob":                    {obj{"agent_id": "team-[a"}, "agent_id"},
		"long agent":                     {obj{"agent_id": strings.Repeat("a", condition.MaxLabel+1)}, "agent_id"},
		"control in agent":               {obj{"agent_id": "a\x01"}, "agent_id"},
		"list of agents":                 {obj{"agent_id": []string{"a"}}, "agent_id"},
		"empty policy":                   {obj{"policy_id": ""}, "policy_id"},
		"policy that is no UUID":         {obj{"policy_id": "p"}, "policy_id"},
		"policy of nobody":               {obj{"policy_id": uuid.NewString()}, "policy_id"},
		"policy of another organization": {obj{"policy_id": policyID}, "policy_id"},
		"another style":                  {obj{"agentId": "ci"}, "agentId"},
	} {
		t.Run(name, func(t *testing.T) { h.mint(h.operator(acme), tc.body).wantField(tc.field) })
	}
}

// TestDecision_Credentials_ABoundKeyDoesNothingForTheOrganization checks "its scopes are among
// policy:evaluate policy:read actions:record facts:assert history:read approvals:read
// sessions:write, another is 400 when it is minted". Older keys may have other scopes:
// TestDecision_Credentials_AuthorizationMatrix tests such keys on every route.
func TestDecision_Credentials_ABoundKeyDoesNothingForTheOrganization(t *testing.T) {
	h := start(t)
	can := []string{
		"policy:evaluate", "policy:read", "actions:record", "facts:assert", "history:read", "approvals:read", "sessions:write",
	}
	for _, scope := range Scopes() {
		r := h.mint(h.operator(acme), obj{"agent_id": "ci", "scopes": []string{"policy:evaluate", scope}})
		if slices.Contains(can, scope) {
			r.wantStatus(http.StatusCreated)
			continue
		}
		p := r.wantProblem(http.StatusBadRequest, codeInvalidRequest)
		if len(p.Errors) != 1 || p.Errors[0].Field != "scopes[1]" || !strings.Contains(p.Errors[0].Message, scope) ||
			!strings.Contains(p.Errors[0].Message, strings.Join(can[:2], ", ")) {
			t.Errorf("%s: %v, want one of scopes[1] with the scope and those that such a key can have", scope, p.Errors)
		}
	}
	h.mint(h.operator(acme), obj{"agent_id": "ci"}).wantStatus(http.StatusCreated)
}

// TestDecision_Credentials_ABoundKeyApprovesNothing checks a key from before this restriction. Such
// a key can approve neither the requests of another agent nor the requests of its own agent.
func TestDecision_Credentials_ABoundKeyApprovesNothing(t *testing.T) {
	h := start(t)
	h.register(acme)
	id := h.held(acme)
	for _, agents := range []string{"ci", "another", "*"} {
		key := h.boundBefore(agents, "approvals:decide", "approvals:read")
		h.do("PATCH", "/v1/approvals/"+id, key, obj{"status": "approved"}).wantProblem(http.StatusForbidden, codeAgentNotBound)
	}
	asker, _ := h.bound("ci", "policy:evaluate")
	body := intent(obj{"resource": "held"})
	got := read[result](h.do("POST", "/v1/policy/evaluate", asker, body).wantStatus(http.StatusOK))
	h.do("GET", "/v1/approvals/"+got.DecisionID, asker, nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/approvals/"+id, asker, nil).wantProblem(http.StatusForbidden, codeInsufficientScope)
}

// TestDecision_Credentials_ABoundKeyReadsForItsAgentsOnly checks "a key with agent_id evaluates, records and reads for
// those agents only".
func TestDecision_Credentials_ABoundKeyReadsForItsAgentsOnly(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(acme, obj{"policy_id": "3f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20", "agent_id": "team-b/*"})
	h.register(acme, obj{"policy_id": "3f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d21", "agent_id": "team-a/*"})
	h.subscribe(acme, "business")
	h.rule(acme, `{"resource":"held"}`, persons)
	made := map[string][]string{} // ids of decisions by agent
	for _, agent := range []string{"team-a/ci", "team-a/cd", "team-b/ci", "ann@corp.example", "bob@corp.example"} {
		for range 3 {
			made[agent] = append(made[agent], h.decision(h.operator(acme), obj{"agent_id": agent, "resource": "held"}))
		}
	}
	for _, tc := range []struct {
		binding, policies string
		agents            []string
	}{
		{"team-a/ci", "* team-a/*", []string{"team-a/ci"}},
		{"team-a/*", "* team-a/*", []string{"team-a/ci", "team-a/cd"}},
		{"team-b/ci", "* team-b/*", []string{"team-b/ci"}},
		{"ann@corp.example", "*", []string{"ann@corp.example"}},
		{"nobody", "*", nil},
	} {
		t.Run(tc.binding, func(t *testing.T) {
			h := *h
			h.t = t
			key, _ := h.bound(tc.binding, "history:read", "approvals:read", "policy:read", "policy:evaluate")
			var want []string
			for _, agent := range tc.agents {
				want = append(want, made[agent]...)
			}
			slices.Sort(want)
			var listed, approvals, policies []string
			for _, row := range read[page[storage.Record]](h.do("GET", "/v1/authorizations?limit=500", key, nil).wantStatus(http.StatusOK)).Data {
				listed = append(listed, row.DecisionID)
			}
			slices.Sort(listed)
			same(t, "rows", want, listed)
			for _, a := range read[page[approvalBody]](h.do("GET", "/v1/approvals?limit=500", key, nil).wantStatus(http.StatusOK)).Data {
				approvals = append(approvals, a.ApprovalID)
			}
			slices.Sort(approvals)
			same(t, "approvals", want, approvals)
			export := string(h.do("GET", "/v1/authorizations/export", key, nil).wantStatus(http.StatusOK).body)
			if got := strings.Count(export, "\r\n") - 1; got != len(want) {
				t.Errorf("the export has %d rows, want %d", got, len(want))
			}
			for agent, ids := range made {
				for _, id := range ids {
					exported := strings.Contains(export, id)
					if exported != slices.Contains(want, id) {
						t.Errorf("decision %s of %s is exported: %t", id, agent, exported)
					}
					// An explanation shows rules, and no bound key may read those.
					h.do("GET", "/v1/authorizations/"+id+"?explain=true", key, nil).wantStatus(http.StatusForbidden)
					for _, path := range []string{"/v1/authorizations/", "/v1/approvals/"} {
						r := h.do("GET", path+id, key, nil)
						if slices.Contains(want, id) {
							r.wantStatus(http.StatusOK)
						} else {
							r.wantProblem(http.StatusForbidden, codeAgentNotBound)
						}
					}
				}
			}
			// A filter for another agent must not return that agent's rows.
			other := read[page[storage.Record]](h.do("GET", "/v1/authorizations?agent_id=bob@corp.example", key, nil).wantStatus(http.StatusOK))
			if len(other.Data) > 0 {
				t.Errorf("it lists %d rows of bob", len(other.Data))
			}
			for _, p := range read[page[engine.ActionPolicy]](h.do("GET", "/v1/policies", key, nil).wantStatus(http.StatusOK)).Data {
				policies = append(policies, p.AgentID)
			}
			slices.Sort(policies)
			same(t, "policies", tc.policies, strings.Join(policies, " "))
		})
	}
	key, _ := h.bound("team-a/*", "policy:read", "policy:evaluate")
	trial := obj{"rules": []any{}, "intent": intent(obj{"agent_id": "team-a/ci", "policy_id": "3f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20"})["intent"]}
	h.simulate(key, trial).wantProblem(http.StatusForbidden, codeAgentNotBound)
}

func TestRecordAction_ABoundKeyRecordsForItsAgentsOnly(t *testing.T) {
	h := start(t)
	h.register(acme)
	record := func(token, id string) *reply {
		return h.do("POST", "/v1/actions/record", token, obj{"decision_id": id, "outcome": "executed"})
	}
	of := func(agent string) string { return h.decision(h.operator(acme), obj{"agent_id": agent}) }
	for _, tc := range []struct{ agents, yes, no string }{
		{"ci", "ci", "cj"},
		{"ci", "CI", "cj"}, // three spellings of one agent
		{"CI", "ci", "cj"},
		{"team-a/*", "team-a/ci", "team-b/ci"},
		{"Team-A/*", "Team-A/ci", "Team-B/ci"},
		{"ann@corp.example", "ann@corp.example", "bob@corp.example"},
	} {
		key, _ := h.bound(tc.agents, "actions:record")
		record(key, of(tc.yes)).wantStatus(http.StatusOK)
		id := of(tc.no)
		record(key, id).wantProblem(http.StatusForbidden, codeAgentNotBound)
		row := read[storage.Record](h.do("GET", "/v1/authorizations/"+id, h.operator(acme), nil))
		if row.Settlement != nil {
			t.Errorf("%s settled a decision of %s: %+v", tc.agents, tc.no, row.Settlement)
		}
		record(key, h.decisionOfRival()).wantProblem(http.StatusNotFound, "decision_not_found")
	}
	// The row has a tag instead of the agent's id, so the glob cannot match. The key may still
	// record, because the key itself requested the decision.
	key, _ := h.bound("*@corp.example", "actions:record", "policy:evaluate")
	record(key, h.decision(key, obj{"agent_id": "ann@corp.example"})).wantStatus(http.StatusOK)
	record(key, of("ann@corp.example")).wantProblem(http.StatusForbidden, codeAgentNotBound)
}

func (h *harness) decisionOfRival() string {
	h.t.Helper()
	h.register(rival, obj{"policy_id": policyID, "version": 1})
	return h.decisionOf(rival)
}

// TestAuth_ATokenWhoseBindingDoesNotCompileIsRefused checks that a key with an invalid binding is
// refused. The server must not treat it as an unbound key.
func TestAuth_ATokenWhoseBindingDoesNotCompileIsRefused(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, id := apikey.New()
	must(t, h.docs.PutToken(t.Context(), &storage.Token{
		ID: id, OrganizationID: acme, Name: "n", Scopes: []string{"policy:evaluate"}, AgentID: "team-[a",
		Hash: apikey.Hash([]byte(key)), CreatedAt: h.clock.Now(),
	}, 0))
	h.do("POST", "/v1/policy/evaluate", key, intent()).wantProblem(http.StatusInternalServerError, codeInternal)
}
