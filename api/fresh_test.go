package api

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// tell reports a change to the server, as the store would.
func (h *harness) tell(c storage.Change) {
	for _, tell := range h.store.told {
		tell(c)
	}
}

// behind changes an agent, a key and a plan in the store without telling the server. Another
// replica's writes have this effect while they are not yet heard of.
func (h *harness) behind(agent, keyID string, status engine.AgentStatus, plan string) {
	h.t.Helper()
	ctx := context.Background()
	_, err := h.docs.SetAgentStatus(ctx, acme, agent, status, h.clock.Now(), 0)
	must(h.t, err)
	must(h.t, h.docs.RevokeToken(ctx, acme, keyID, h.clock.Now()))
	must(h.t, storagetest.PutSubscription(ctx, h.docs, &storage.Subscription{OrganizationID: acme, Plan: plan}))
}

// TestFresh_WhatMayBeOutOfDateIsReadThrough checks a replica that has heard nothing from its store
// for more than two seconds. Such a replica must not use its caches. It must refuse a request when
// it cannot read the store.
func TestFresh_WhatMayBeOutOfDateIsReadThrough(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "x", "externalId": "ci"}).wantStatus(http.StatusCreated)
	key, keyID := h.key(acme, "policy:evaluate")
	plan := func() string {
		body := read[usageBody](h.do("GET", "/v1/usage/summary", h.operator(acme), nil).wantStatus(http.StatusOK))
		return body.Plan
	}
	wantDecision(t, h.do("POST", "/v1/policy/evaluate", key, intent()), "allow")
	if got := plan(); got != "free" {
		t.Errorf("plan = %s, want free", got)
	}

	h.store.deaf.Store(true)
	h.behind("ci", keyID, engine.AgentDisabled, "pro")
	wantDecision(t, h.do("POST", "/v1/policy/evaluate", key, intent()), "allow") // the replica may still use its caches
	h.store.age.Store(int64(3 * time.Second))
	h.do("POST", "/v1/policy/evaluate", key, intent()).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	wantDecision(t, h.do("POST", "/v1/policy/evaluate", h.operator(acme), intent()), "deny")
	if got := plan(); got != "pro" {
		t.Errorf("plan = %s, want pro", got)
	}
	for _, call := range []string{"Policy", "AllRules", "AgentsNamed", "Subscription"} {
		h.store.fail(call, errors.New("unreachable"))
		h.do("POST", "/v1/policy/evaluate", h.operator(acme), intent()).wantProblem(http.StatusServiceUnavailable, codeStoreUnavailable)
		h.store.fail(call, nil)
	}
	h.store.fail("Token", errors.New("unreachable"))
	h.do("POST", "/v1/policy/evaluate", key, intent()).wantProblem(http.StatusServiceUnavailable, codeStoreUnavailable)
	h.store.fail("Token", nil)

	h.store.age.Store(0)
	h.tell(storage.Change{Kind: storage.EverythingChanged})
	h.do("POST", "/v1/policy/evaluate", key, intent()).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	wantDecision(t, h.do("POST", "/v1/policy/evaluate", h.operator(acme), intent()), "deny")
	if got := plan(); got != "pro" {
		t.Errorf("plan after everything changed = %s, want pro", got)
	}
}

// TestChanges_NameTheirActor checks that every write records a change. The change names the
// credential that made the write.
func TestChanges_NameTheirActor(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, keyID := h.key(acme, "rules:write", "agents:write")
	h.do("POST", "/v1/rules", key, obj{"name": "r", "condition": "{}", "action": `{"decision":"deny"}`}).wantStatus(http.StatusCreated)
	h.do("POST", "/v1/agents", key, obj{"name": "x", "externalId": "ci"}).wantStatus(http.StatusCreated)
	h.do("PATCH", "/v1/agents/ci/status", h.operator(acme), obj{"status": "disabled"}).wantStatus(http.StatusOK)
	h.do("DELETE", "/v1/tokens/"+keyID, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	changes, err := h.store.Changes(context.Background(), storage.Change{}, 100)
	must(t, err)
	var got []string
	for _, c := range changes {
		got = append(got, storage.CollectionOf(c.Kind).Name+" "+c.Actor)
	}
	operator := "operator:op@" + acme
	want := []string{"policy " + operator, "key " + operator, "rule " + keyID, "agent " + keyID, "agent " + operator, "key " + operator}
	same(t, "changes", want, got)
}
