package api

import (
	"net/http"
	"testing"

	"writ/engine"
)

// TestEvaluate_LimitOverTime checks that a simulation does not count towards a limit. A failed
// action stops counting, and is subtracted only once.
func TestEvaluate_LimitOverTime(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.rule(acme, `{"count":{"by":["agent_id"],"window":"1h"},"gt":2}`, `{"decision":"deny","reason":"too many"}`)
	token := h.operator(acme)
	h.decision(token, nil)
	id := h.decision(token, nil)
	wantDecision(t, h.evaluate(acme, intent()), "deny")
	for range 3 {
		h.do("POST", "/v1/actions/record", token, obj{"decision_id": id, "outcome": "failed"}).wantStatus(http.StatusOK)
	}
	for range 3 {
		var got simulated
		if h.simulate(token, obj{"intent": intent()["intent"]}).wantStatus(http.StatusOK).into(&got); got.Decision != engine.Allow {
			t.Fatalf("simulated: %v, want allow", got.Reasons)
		}
	}
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	wantDecision(t, h.evaluate(acme, intent()), "deny")
}
