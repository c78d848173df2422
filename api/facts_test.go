package api

import (
	"net/http"
	"strings"
	"testing"
)

// TestDecision_Credentials_FactsNeedTheScope checks "Metadata keys that begin with fact. are statements of the
// integration, not of the agent: a key needs the scope facts:assert to send them, else 400."
func TestDecision_Credentials_FactsNeedTheScope(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.rule(acme, `{"metadata.fact.ticket_open":"no"}`, `{"decision":"deny","reason":"the ticket is closed"}`)
	agent, _ := h.key(acme, "policy:evaluate")
	integration, _ := h.key(acme, "policy:evaluate", "facts:assert")
	with := func(metadata map[string]string) obj { return intent(obj{"metadata": metadata}) }
	for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
		h.do("POST", path, agent, with(map[string]string{"fact.ticket_open": "yes", "env": "prod"})).wantField("intent.metadata.fact.ticket_open")
		h.do("POST", path, agent, with(map[string]string{"fact.": "x"})).wantField("intent.metadata.fact.")
		h.do("POST", path, agent, with(map[string]string{"env": "prod"})).wantStatus(http.StatusOK)
		for _, token := range []string{integration, h.operator(acme)} {
			h.do("POST", path, token, with(map[string]string{"fact.ticket_open": "yes"})).wantStatus(http.StatusOK)
		}
	}
	r := h.do("POST", "/v1/policy/evaluate", integration, with(map[string]string{"fact.ticket_open": "no"})).wantStatus(http.StatusOK)
	if !strings.Contains(string(r.body), "the ticket is closed") {
		t.Errorf("%s, want the rule to read the fact", r.body)
	}
	h.wantRows(acme, 7)
}

// TestFacts_WhatReadsAsAFactIsRefused checks that a metadata key which only looks like a fact is
// refused, even with the scope facts:assert. People who read the history or write rules would
// mistake such a key for a fact.
func TestFacts_WhatReadsAsAFactIsRefused(t *testing.T) {
	h := start(t)
	h.register(acme)
	for _, key := range []string{
		"Fact.env", "FACT.env", "ｆact.env", "fact．env", "fact․env", "fa\u200bct.env", "\ufefffact.env", "f\u00adact.env",
		"fact\u2060.env", "𝐟𝐚𝐜𝐭.env", "fac\u034ft.env", " fact.env", "\u00a0fact.env", "Ⓕact.env", "fac\ufe00t.env",
	} {
		r := h.evaluate(acme, intent(obj{"metadata": map[string]string{key: "x"}}))
		if r.status != http.StatusBadRequest {
			t.Errorf("metadata key %+q = %d %s, want 400", key, r.status, r.body)
		}
	}
	for _, key := range []string{"fact", "facts.env", "fact_env", "artifact.id", "my.fact.env", "fäct.env", "факт.env", "fact:env", "事实.env", "f.act"} {
		r := h.evaluate(acme, intent(obj{"metadata": map[string]string{key: "x"}}))
		if r.status != http.StatusOK {
			t.Errorf("metadata key %+q = %d %s, want 200: it is no fact and reads as none", key, r.status, r.body)
		}
	}
}
