package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"writ/engine"
	"writ/engine/condition"
	"writ/internal/apikey"
	"writ/storage"
)

// mint makes a key with the credential token. body describes the key.
func (h *harness) mint(token string, body obj) *reply {
	h.t.Helper()
	if body["name"] == nil {
		body["name"] = "test"
	}
	return h.do("POST", "/v1/tokens", token, body)
}

// bound makes a key of acme that is bound to agents.
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
				h.evaluate(acme, body).wantStatus(http.StatusOK) // the refused request has not used its intent id
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

// TestDecision_Credentials_ABoundKeyMintsKeysBoundAsTightlyOnly checks "A key can't mint a scope it lacks, a minted key
// ends no later than its maker and is revoked with it". A minted key must not be bound less tightly either.
func TestDecision_Credentials_ABoundKeyMintsKeysBoundAsTightlyOnly(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(acme, obj{"policy_id": "3f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20"})
	var maker tokenSecret
	h.mint(h.operator(acme), obj{
		"agent_id": "team-a/**", "policy_id": policyID, "scopes": []string{"tokens:write", "tokens:read", "policy:evaluate"},
	}).wantStatus(http.StatusCreated).into(&maker)
	for agents, status := range map[any]int{
		"team-a/ci": http.StatusCreated, "team-a/*": http.StatusCreated, "team-a/**": http.StatusCreated, nil: http.StatusCreated,
		"*": http.StatusForbidden, "**": http.StatusForbidden, "team-*": http.StatusForbidden, "team-b/ci": http.StatusForbidden,
		"Team-A/ci": http.StatusForbidden, "{team-a,team-b}/ci": http.StatusForbidden, "team-a*": http.StatusForbidden,
	} {
		body := obj{"name": fmt.Sprint(agents)}
		if agents != nil {
			body["agent_id"] = agents
		}
		r := h.mint(maker.Token, body).wantStatus(status)
		if status == http.StatusForbidden {
			r.wantProblem(status, codeAgentNotBound)
		}
	}
	h.mint(maker.Token, obj{"policy_id": "3f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20"}).wantField("policy_id")
	h.mint(maker.Token, obj{"name": "same policy", "policy_id": policyID}).wantStatus(http.StatusCreated)
	rows := read[[]tokenSummary](h.do("GET", "/v1/tokens", h.operator(acme), nil).wantStatus(http.StatusOK))
	got := make(map[string]string)
	for _, row := range rows {
		got[row.Name] = row.AgentID + " " + row.PolicyID
	}
	want := map[string]string{
		"test": "team-a/** " + policyID, "<nil>": "team-a/** " + policyID, "team-a/**": "team-a/** " + policyID,
		"team-a/*": "team-a/* " + policyID, "team-a/ci": "team-a/ci " + policyID, "same policy": "team-a/** " + policyID,
	}
	same(t, "bindings", want, got)
}

// TestTokens_AChildOfABoundKeyIsBoundAndRevokedWithIt checks that a key made by a bound key has the
// same binding. Revoking the bound key revokes the other key too.
func TestTokens_AChildOfABoundKeyIsBoundAndRevokedWithIt(t *testing.T) {
	h := start(t)
	h.register(acme)
	maker, makerID := h.bound("ci", "tokens:write", "policy:evaluate")
	child := read[tokenSecret](h.mint(maker, obj{}).wantStatus(http.StatusCreated))
	h.do("POST", "/v1/policy/evaluate", child.Token, intent(obj{"agent_id": "ci"})).wantStatus(http.StatusOK)
	h.do("POST", "/v1/policy/evaluate", child.Token, intent(obj{"agent_id": "cd"})).wantProblem(http.StatusForbidden, codeAgentNotBound)
	h.do("DELETE", "/v1/tokens/"+makerID, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	h.do("POST", "/v1/policy/evaluate", child.Token, intent()).wantProblem(http.StatusUnauthorized, codeUnauthorized)
}

func TestTokens_ABoundKeySeesAndRevokesKeysBoundAsTightlyOnly(t *testing.T) {
	h := start(t)
	_, unbound := h.key(acme, "policy:evaluate")
	_, other := h.bound("team-b/ci")
	_, mate := h.bound("team-a/ci")
	_, wider := h.bound("team-*/**")
	key, own := h.bound("team-a/**", "tokens:read", "tokens:write")
	rows := read[[]tokenSummary](h.do("GET", "/v1/tokens", key, nil).wantStatus(http.StatusOK))
	got := make(map[string]bool)
	for _, row := range rows {
		got[row.ID] = true
	}
	same(t, "keys that are listed", map[string]bool{mate: true, own: true}, got)
	for _, id := range []string{unbound, other, wider} {
		h.do("DELETE", "/v1/tokens/"+id, key, nil).wantProblem(http.StatusForbidden, codeAgentNotBound)
	}
	_, theirs := h.key(rival)
	for _, id := range []string{theirs, second(apikey.New()), "x"} {
		h.do("DELETE", "/v1/tokens/"+id, key, nil).wantProblem(http.StatusNotFound, "token_not_found")
	}
	h.do("DELETE", "/v1/tokens/"+mate, key, nil).wantStatus(http.StatusNoContent)
	h.do("DELETE", "/v1/tokens/"+own, key, nil).wantStatus(http.StatusNoContent)
}

func TestRecordAction_ABoundKeyRecordsForItsAgentsOnly(t *testing.T) {
	h := start(t)
	h.register(acme)
	record := func(token, id string) *reply {
		return h.do("POST", "/v1/actions/record", token, obj{"decision_id": id, "outcome": "executed"})
	}
	of := func(agent string) string { return h.decision(h.operator(acme), obj{"agent_id": agent}) }
	for _, tc := range []struct{ agents, yes, no string }{
		{"ci", "ci", "CI"},
		{"team-a/*", "team-a/ci", "team-b/ci"},
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
	// The row has a tag instead of the id, so the glob cannot match. The key may record because it
	// asked for the decision.
	key, _ := h.bound("*@corp.example", "actions:record", "policy:evaluate")
	record(key, h.decision(key, obj{"agent_id": "ann@corp.example"})).wantStatus(http.StatusOK)
	record(key, of("ann@corp.example")).wantProblem(http.StatusForbidden, codeAgentNotBound)
}

func (h *harness) decisionOfRival() string {
	h.t.Helper()
	h.register(rival, obj{"policy_id": policyID, "version": 1})
	return h.decisionOf(rival)
}

func TestAgents_ABoundKeyRegistersAndSwitchesItsAgentsOnly(t *testing.T) {
	h := start(t)
	key, _ := h.bound("team-a/*", "agents:write")
	create := func(externalID string) *reply {
		body := obj{"name": "n"}
		if externalID != "" {
			body["externalId"] = externalID
		}
		return h.do("POST", "/v1/agents", key, body)
	}
	var mine, other engine.Agent
	create("team-a/ci").wantStatus(http.StatusCreated).into(&mine)
	create("team-b/ci").wantProblem(http.StatusForbidden, codeAgentNotBound)
	create("").wantProblem(http.StatusForbidden, codeAgentNotBound)
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "n", "externalId": "ci"}).wantStatus(http.StatusCreated).into(&other)
	for _, status := range []string{"disabled", "active"} {
		h.do("PATCH", "/v1/agents/"+mine.ID+"/status", key, obj{"status": status}).wantStatus(http.StatusOK)
		for _, name := range []string{other.ID, "ci"} {
			h.do("PATCH", "/v1/agents/"+name+"/status", key, obj{"status": status}).wantProblem(http.StatusForbidden, codeAgentNotBound)
		}
	}
	h.do("PATCH", "/v1/agents/"+uuid.NewString()+"/status", key, obj{"status": "active"}).wantProblem(http.StatusNotFound, "agent_not_found")
}

func TestPolicies_ABoundKeyWritesPoliciesOfItsAgentsOnly(t *testing.T) {
	h := start(t)
	key, _ := h.bound("team-a/**", "policy:write")
	register := func(token string, changes obj) *reply {
		return h.do("POST", "/v1/policies/register", token, obj{"policy": policy(acme, changes)})
	}
	register(key, obj{"agent_id": "*"}).wantProblem(http.StatusForbidden, codeAgentNotBound)
	register(key, obj{"agent_id": "team-b/ci"}).wantProblem(http.StatusForbidden, codeAgentNotBound)
	register(key, obj{"agent_id": "team-a/*"}).wantStatus(http.StatusCreated)
	register(key, obj{"agent_id": "team-a/ci", "version": 2}).wantStatus(http.StatusCreated)
	register(h.operator(acme), obj{"agent_id": "*", "version": 3}).wantStatus(http.StatusCreated)
	register(key, obj{"agent_id": "team-a/ci", "version": 4}).wantProblem(http.StatusForbidden, codeAgentNotBound)
}

// TestAuth_ATokenWhoseBindingDoesNotCompileIsRefused checks that a key is refused if its binding
// does not compile. The key must not count as unbound.
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
