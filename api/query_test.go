package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestDecision_Resources_UnknownQueryParametersAre400Everywhere(t *testing.T) {
	h := start(t, selling(&seller{}), func(c *setup) { c.ServiceToken = serviceToken })
	h.subscribe(acme, "business")
	static := map[string]bool{
		"/": true, "/openapi": true, "/v1/docs": true, "/openapi.yaml": true, "/openapi.json": true,
		"/v1/openapi.yaml": true, "/v1/openapi.json": true, "/health": true,
		"/schemas/rule.schema.json": true,
	}
	for _, rt := range h.server.routes() {
		rt.path = strings.Replace(rt.path, ":kind", "rule", 1)
		token := h.operator(acme)
		if rt.scope == service {
			token = serviceToken
		}
		var body any
		if rt.method == http.MethodPost || rt.method == http.MethodPatch || rt.method == http.MethodPut {
			body = "{}"
		}
		r := h.do(rt.method, strings.Replace(rt.path, ":"+rt.param, "x", 1)+"?limti=1", token, body)
		if static[rt.path] {
			r.wantStatus(http.StatusOK)
			continue
		}
		r.wantField("limti")
	}
}

func TestDecision_Resources_UnknownFieldsAre400Everywhere(t *testing.T) {
	h := start(t, selling(&seller{}))
	h.register(acme)
	asked := 0
	for _, rt := range h.server.routes() {
		if rt.is(signed) || rt.method != http.MethodPost && rt.method != http.MethodPatch && rt.method != http.MethodPut {
			continue // Stripe may add members to events
		}
		if rt.path == "/v1/hooks/claude" || rt.is(standard) {
			continue // Claude Code may add members to calls, and AuthZEN demands that unknown ones are ignored
		}
		if rt.path == "/v1/policy/evaluate/stream" {
			continue // each line has an answer of its own
		}
		path, body := h.sample(rt)
		in, _ := body.(obj)
		if in == nil {
			in = obj{}
		}
		in["misspelt"] = 1
		h.do(rt.method, path, h.operator(acme), in).wantField("misspelt")
		asked++
	}
	if asked < 10 {
		t.Errorf("asked %d routes, want all that take a body", asked)
	}
}

func TestDecision_Resources_PagesHave50ItemsByDefault(t *testing.T) {
	h := start(t)
	for range 51 {
		h.rule(acme, "{}", `{"decision":"allow"}`)
	}
	var rules []any
	r := h.do("GET", "/v1/rules", h.operator(acme), nil).wantStatus(http.StatusOK)
	if r.into(&rules); len(rules) != 50 {
		t.Errorf("%d rules, want 50", len(rules))
	}
	r = h.do("GET", nextPath(t, r), h.operator(acme), nil).wantStatus(http.StatusOK)
	if r.into(&rules); len(rules) != 1 || r.header.Get("Link") != "" {
		t.Errorf("%d rules on the second page, Link %q, want 1 and none", len(rules), r.header.Get("Link"))
	}
}
