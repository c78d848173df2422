package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ.example/writ/api/limit"
)

// TestSecurityHeaders checks that every route and every kind of refusal sends the headers of
// everyResponse, and that what needs no credential sends those of publicResponse.
func TestSecurityHeaders(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Hosted.APIURL = "https://api.example.com"
		c.ServiceToken = "service-token"
		c.Limits.Read = 200 * time.Millisecond
		c.RateLimits.Evaluate = limit.Rate{PerSecond: 1, Burst: 1}
	})
	h.register(acme)
	h.subscribe(acme, "business")
	check := func(what string, r *reply) {
		t.Helper()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Strict-Transport-Security": "max-age=31536000",
		} {
			r.wantHeader(name, want)
		}
		want := "no-store"
		if r.header.Get("ETag") != "" {
			want = "public, no-cache"
		}
		r.wantHeader("Cache-Control", want)
		for _, name := range []string{"Server", "X-Powered-By", "Access-Control-Allow-Origin"} {
			r.wantHeader(name, "")
		}
	}
	checkShown := func(what string, r *reply) {
		t.Helper()
		check(what, r)
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			r.wantHeader(name, want)
		}
		if got := r.header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; ") || !strings.Contains(got, "frame-ancestors 'none'") {
			t.Errorf("%s = %d, Content-Security-Policy %q, want nothing by default and no frames", what, r.status, got)
		}
	}
	for _, rt := range append(h.server.routes(), h.server.assetRoutes()...) {
		path := strings.Replace(rt.path, ":"+rt.param, "x", 1)
		for _, token := range []string{"", h.operator(acme), "service-token"} {
			r := h.do(rt.method, path, token, nil)
			if rt.scope == public {
				checkShown(rt.method+" "+path, r)
				continue
			}
			check(rt.method+" "+path, r)
			if got := r.header.Get("Content-Type"); strings.HasPrefix(got, "text/html") {
				t.Errorf("%s %s sends a page, %s, to a credential", rt.method, path, got)
			}
		}
	}
	checkShown("unchanged page", h.do("GET", "/", "", nil, "If-None-Match", "*"))
	checkShown("page of the console", h.do("GET", "/console", "", nil))
	check("unknown path", h.do("GET", "/nope", "", nil))
	check("unknown method", h.do("PUT", "/health", "", nil))
	check("credential in the URL", h.do("GET", "/health?token=x", "", nil))
	check("wrong media type", h.do("POST", "/v1/rules", h.operator(acme), "{}", "Content-Type", "text/plain"))
	h.evaluate(acme, intent())
	check("rate limited", h.evaluate(acme, intent()).wantStatus(http.StatusTooManyRequests))
	h.store.fail("AllRules", errors.New("boom"))
	check("error", h.do("GET", "/v1/rules", h.operator(acme), nil).wantStatus(http.StatusInternalServerError))
	for status, request := range map[int]string{
		http.StatusBadRequest:                  "hello\r\n\r\n",
		http.StatusRequestTimeout:              "POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab",
		http.StatusRequestEntityTooLarge:       "POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n",
		http.StatusRequestHeaderFieldsTooLarge: "GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		check(http.StatusText(status), h.raw(request).wantStatus(status))
	}
}

func TestSecurityHeaders_NoHSTSWithoutTLS(t *testing.T) {
	h := start(t)
	h.do("GET", "/health", "", nil).wantHeader("Strict-Transport-Security", "")
}
