package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// endless is a condition in Rego that ends only when its evaluation stops it.
type endless struct{ engine.RegoCondition }

func (endless) Match(in *engine.RegoInput) (bool, error) {
	for in.Work.Left() > 0 && in.Work.Charge(1<<14) {
		time.Sleep(time.Millisecond)
	}
	return false, condition.ErrTooMuchWork
}

func (endless) Review() condition.Review   { return condition.Review{} }
func (endless) Fits(engine.Decision) error { return nil }
func (endless) Lists() []string            { return nil }
func (endless) Documents() []string        { return nil }
func (endless) Libraries() []string        { return nil }
func (endless) Size() int                  { return 0 }
func (endless) Reads() engine.RegoReads    { return engine.RegoReads{Resource: true, Agent: true} }

// TestDecision_Rules_TimeThatRunsOutIs503 checks "never in wall time (time that runs out is a 503,
// with nothing decided)". Nothing is stored or metered, and the log names the rule. The same
// request is decided once there is enough time.
func TestDecision_Rules_TimeThatRunsOutIs503(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Service.CompileRego = func(string) (engine.RegoCondition, error) { return endless{}, nil }
	})
	h.register(acme)
	rule := h.rule(acme, `{"rego":"true"}`, `{"decision":"deny"}`)
	handle := h.server.deadlines.timeout
	for _, path := range []string{
		"/v1/policy/evaluate", "/v1/governance/authorize", "/v1/policy/simulate", batchPath,
	} {
		t.Run(path, func(t *testing.T) {
			body := intent()
			switch path {
			case "/v1/policy/simulate":
				delete(body, "policy_id")
			case batchPath:
				body = obj{"mode": "all", "intents": []any{body["intent"]}}
			}
			h.server.deadlines.timeout = time.Millisecond
			h.clock.advance(time.Minute)
			r := h.do("POST", path, h.operator(acme), body)
			r.wantProblem(http.StatusServiceUnavailable, codeTimeout)
			r.wantHeader("Retry-After", "1")
			h.server.deadlines.timeout = handle
			h.clock.advance(time.Minute)
		})
	}
	h.wantRows(acme, 0)
	if n, err := h.store.Metered(t.Context(), acme, storage.MonthOf(h.clock.Now())); err != nil || n != 0 {
		t.Errorf("meter = %d, %v, want 0", n, err)
	}
	if log := h.log.String(); !strings.Contains(log, "nothing was decided") || !strings.Contains(log, rule) {
		t.Errorf("log = %s, want a line that names the rule %s", log, rule)
	}
	if got := h.admin("/metrics").Body.String(); !strings.Contains(got, `writ_rule_condition_errors_total{cause="time"} `) ||
		strings.Contains(got, `writ_rule_condition_errors_total{cause="time"} 0`) {
		t.Errorf("metrics = %s, want conditions that ran out of time", got)
	}
	open := h.admin("/metrics", "Accept", "application/openmetrics-text; version=1.0.0").Body.String()
	if !strings.Contains(open, `# {rule_id="`+rule+`"}`) {
		t.Errorf("metrics = %s, want an exemplar that names the rule %s", open, rule)
	}
	// With enough time, the limit on steps ends the condition. Such a condition counts as a match.
	wantDecision(t, h.evaluate(acme, intent(obj{"intent_id": uuid.NewString()})), "deny")
	h.wantRows(acme, 1)
}
