package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestRequestIDs(t *testing.T) {
	ids := newRequestIDs("the-service-token")
	for name, tc := range map[string]struct {
		in   string
		kept bool
	}{
		"plain":        {"abc-DEF_1.2", true},
		"one":          {"x", true},
		"128":          {strings.Repeat("a", 128), true},
		"129":          {strings.Repeat("a", 129), false},
		"empty":        {"", false},
		"a secret":     {"the-service-token", false},
		"space":        {"a b", false},
		"line break":   {"a\nb", false},
		"not ASCII":    {"é", false},
		"quote":        {`a"b`, false},
		"NUL":          {"a\x00", false},
		"header split": {"a\r\nX: y", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(ids.append(nil, []byte(tc.in)))
			if kept := got == tc.in; kept != tc.kept {
				t.Errorf("append(%q) = %q, want kept %v", tc.in, got, tc.kept)
			}
			if !validRequestID([]byte(got)) {
				t.Errorf("append(%q) = %q, which is not a request id", tc.in, got)
			}
		})
	}
	a, b := string(ids.append(nil, nil)), string(ids.append(nil, nil))
	if a == b {
		t.Errorf("two ids = %q, want different ones", a)
	}
}

func TestDecision_Errors_EveryResponseCarriesXRequestId(t *testing.T) {
	h := start(t)
	for name, r := range map[string]*reply{
		"200": h.do("GET", "/health", "", nil),
		"204": h.do("DELETE", "/v1/tokens/"+second(h.key(acme)), h.operator(acme), nil),
		"401": h.do("GET", "/v1/rules", "", nil),
		"404": h.do("GET", "/nope", "", nil),
		"405": h.do("PUT", "/health", "", nil),
		"415": h.do("POST", "/v1/agents", h.operator(acme), "x", "Content-Type", "text/plain"),
	} {
		if id := r.header.Get(headerRequestID); !validRequestID([]byte(id)) {
			t.Errorf("%s: X-Request-Id = %q, want an id", name, id)
		}
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		} {
			r.wantHeader(header, want)
		}
	}
	r := h.do("GET", "/nope", "", nil, headerRequestID, "caller-1")
	if p := r.wantProblem(http.StatusNotFound, codeNotFound); p.RequestID != "caller-1" {
		t.Errorf("request_id = %q, want the caller's", p.RequestID)
	}
}

func second[A, B any](_ A, b B) B { return b }
