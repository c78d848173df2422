package api

import (
	"net/http"
	"testing"
	"time"
)

// TestCredential_TellsWhatItMayDo asks with an operator's token and with four keys: a plain key, a key
// without any scope that a route wants, a bound key and a revoked key.
func TestCredential_TellsWhatItMayDo(t *testing.T) {
	h := start(t)
	h.register(acme)
	expires := h.clock.Now().Add(time.Hour)
	mint := func(body obj) tokenSecret {
		body["name"] = "n"
		return read[tokenSecret](h.do("POST", "/v1/tokens", h.operator(acme), body).wantStatus(http.StatusCreated))
	}
	ask := func(token string) credentialBody {
		return read[credentialBody](h.do("GET", "/v1/credential", token, nil).wantStatus(http.StatusOK))
	}
	plain := mint(obj{})
	bound := mint(obj{
		"scopes": []string{"history:read", "policy:evaluate"}, "agent_id": "team-a/**", "policy_id": policyID,
		"expiresAt": expires.Format(time.RFC3339),
	})
	facts := mint(obj{"scopes": []string{"facts:assert"}})
	same(t, "a key", credentialBody{OrganizationID: acme, Kind: "api_key", ID: plain.ID, Scopes: []string{"policy:evaluate"}},
		ask(plain.Token))
	same(t, "a bound key", credentialBody{
		OrganizationID: acme, Kind: "api_key", ID: bound.ID, Scopes: []string{"policy:evaluate", "history:read"},
		ExpiresAt: &expires, AgentID: "team-a/**", PolicyID: policyID,
	}, ask(bound.Token))
	same(t, "a key that opens nothing else", []string{"facts:assert"}, ask(facts.Token).Scopes)

	operator := ask(h.operator(acme))
	if operator.Kind != "operator" || operator.OrganizationID != acme || operator.ID == "" || operator.ExpiresAt == nil {
		t.Errorf("operator = %+v, want its kind, organization, sub and end", operator)
	}
	same(t, "an operator's scopes", Scopes(), operator.Scopes)

	h.do("DELETE", "/v1/tokens/"+plain.ID, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	h.do("GET", "/v1/credential", plain.Token, nil).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	h.do("GET", "/v1/credential?x=1", bound.Token, nil).wantProblem(http.StatusBadRequest, codeInvalidRequest)
}
