package core

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

var allowed = `{"result":` + verdictOf("allow", `"policy.allowed: version 1 of the policy allows it"`) + `}`

// verdictOf returns the JSON of a decision with reasons, under the versions of testSet.
func verdictOf(decision, reasons string) string {
	return fmt.Sprintf(`{"decision":%q,"reasons":[%s],"policy_version":1,"rules_revision":57}`, decision, reasons)
}

func testSet(t testing.TB, rules ...engine.Rule) engine.Set {
	t.Helper()
	p, err := engine.CompilePolicy(&engine.ActionPolicy{
		PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20", Version: 1, OrganizationID: "acme", AgentID: "*",
		AllowedActionTypes: []string{"deploy"}, Status: engine.StatusActive, UpdatedAt: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC),
	})
	must.Do(t, err)
	return engine.Set{Policy: p, Rules: engine.CompileRules(rules, engine.Options{}), Revisions: engine.Revisions{Policy: 9, Rules: 57}}
}

func testInput() *engine.Input {
	return &engine.Input{Intent: &engine.Intent{
		IntentID: "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11", PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20", AgentID: "ci",
		ActionType: "deploy", Resource: "prod//web", Metadata: map[string]string{"env": "prod"}, IssuedAt: "2026-11-21T10:00:00Z",
	}, DecidedAt: time.Date(2026, 11, 21, 10, 0, 1, 250_000_000, time.UTC)}
}

// serve starts a core that answers with f. It returns a Core that uses this core.
func serve(t testing.TB, f http.HandlerFunc, mods ...func(*Config)) *Core {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	cfg := Config{URL: server.URL + "/v1/data/writ/core/result", failures: 1 << 20, Metrics: prometheus.NewRegistry()}
	for _, mod := range mods {
		mod(&cfg)
	}
	c := must.Get(New(cfg))(t)
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

// constant answers each question with the same JSON body.
func constant(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // in some tests the client disconnects
	}
}

func (c *Core) decide(t testing.TB) (engine.Result, error) {
	t.Helper()
	return c.Evaluate(t.Context(), testSet(t), testInput())
}

// transport is a core without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// hang is a transport to a core that never answers.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}
