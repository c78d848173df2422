package api

import (
	"net/http"
	"testing"

	"writ.example/writ/engine"
)

// TestDocuments_OneIsReadAsTheListHasIt reads a policy, a rule and an agent by their ids, and changes
// the rule under the entity tag that it was read with.
func TestDocuments_OneIsReadAsTheListHasIt(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	h.register(acme)
	for version := int64(2); version <= 3; version++ {
		h.register(acme, obj{"version": version})
	}
	first := h.do("GET", "/v1/policies/"+policyID+"?limit=2", op, nil).wantStatus(http.StatusOK)
	first.wantHeader("ETag", `"3"`)
	var versions []int64
	got := read[page[engine.ActionPolicy]](first)
	rest := h.do("GET", "/v1/policies/"+policyID+"?limit=2&cursor="+*got.NextCursor, op, nil).wantStatus(http.StatusOK)
	rest.wantHeader("ETag", `"1"`)
	for _, p := range append(got.Data, read[page[engine.ActionPolicy]](rest).Data...) {
		versions = append(versions, p.Version)
	}
	same(t, "versions", []int64{3, 2, 1}, versions)

	ruleID := h.rule(acme, `{}`, `{"decision":"deny"}`)
	r := h.do("GET", "/v1/rules/"+ruleID, op, nil).wantStatus(http.StatusOK)
	same(t, "the rule", read[[]engine.Rule](h.do("GET", "/v1/rules", op, nil))[0], read[engine.Rule](r))
	tag := r.header.Get("ETag")
	h.clock.advance(1e9)
	changed := obj{"priority": 7}
	h.do("PATCH", "/v1/rules/"+ruleID, op, changed, "If-Match", tag).wantStatus(http.StatusOK)
	h.do("PATCH", "/v1/rules/"+ruleID, op, changed, "If-Match", tag).wantProblem(http.StatusPreconditionFailed, codeRuleChanged)
	if now := h.do("GET", "/v1/rules/"+ruleID, op, nil).header.Get("ETag"); now == tag || tag == "" {
		t.Errorf("ETag = %s after a change, %s before", now, tag)
	}

	agent := read[engine.Agent](h.do("POST", "/v1/agents", op, obj{"name": "a", "externalId": "ci"}).wantStatus(http.StatusCreated))
	for _, id := range []string{agent.ID, "ci"} {
		r := h.do("GET", "/v1/agents/"+id, op, nil).wantStatus(http.StatusOK)
		same(t, "the agent "+id, agent, read[engine.Agent](r))
		r.wantHeader("ETag", entityTag(agent.UpdatedAt))
	}
	bound := h.boundBefore("another-agent", "policy:read")
	h.register(acme, obj{"version": 4, "agent_id": "ci"})
	short := h.do("GET", "/v1/policies/"+policyID+"?limit=1", bound, nil).wantStatus(http.StatusOK)
	if p := read[page[engine.ActionPolicy]](short); len(p.Data) != 0 || p.NextCursor == nil {
		t.Errorf("page of a bound key = %+v, want it empty with a cursor", p)
	}
}
