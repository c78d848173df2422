package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestDecision_Resources_UnknownQueryParametersAre400Everywhere(t *testing.T) {
	h := start(t, selling(&seller{}), func(c *Config) { c.ServiceToken = serviceToken })
	h.subscribe(acme, "business")
	static := map[string]bool{
		"/": true, "/openapi": true, "/v1/docs": true, "/openapi.yaml": true, "/openapi.json": true,
		"/v1/openapi.yaml": true, "/v1/openapi.json": true, "/health": true,
	}
	for _, rt := range h.server.routes() {
		token := h.operator(acme)
		if rt.scope == service {
			token = serviceToken
		}
		var body any
		if rt.method == http.MethodPost || rt.method == http.MethodPatch {
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
