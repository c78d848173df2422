package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
)

// TestDecision_DecidedAt checks "It is the clock that a condition may rest on; issued_at is the
// caller's word. Every engine, explanation and repetition sees the row's."
func TestDecision_DecidedAt(t *testing.T) {
	h := start(t) // the clock shows Saturday, 10:00 UTC
	h.register(acme, obj{"allowed_action_types": []string{"*"}})
	for _, condition := range []string{
		`{"cel":"intent.action_type == 'deploy' && decided_at.getDayOfWeek('Europe/Berlin') in [0, 6]"}`,
		`{"rego":"input.intent.action_type == \"sql.a\"; time.weekday([time.parse_rfc3339_ns(input.decided_at), \"Europe/Berlin\"]) in {\"Saturday\", \"Sunday\"}"}`,
		`{"action_type":"sql.b","decided_at":{"$lt":"2026-11-23T00:00:00+01:00"}}`,
	} {
		h.rule(acme, condition, `{"decision":"deny","reason":"weekend"}`)
	}
	decide := func(action, issued string) (obj, result) {
		in := intent(obj{"action_type": action, "issued_at": issued})
		return in, read[result](h.evaluate(acme, in).wantStatus(http.StatusOK))
	}
	type decided struct {
		in  obj
		got result
	}
	var rows []decided
	for _, action := range []string{"deploy", "sql.a", "sql.b"} {
		for _, issued := range []string{"1999-01-04T10:00:00Z", "2099-01-05T10:00:00Z", "2026-11-23T10:00:00Z"} {
			in, got := decide(action, issued)
			if got.Approved {
				t.Errorf("%s, issued at %s, is allowed on a Saturday", action, issued)
			}
			rows = append(rows, decided{in, got})
		}
	}
	trials := func(at string) string {
		in, _ := intent()["intent"].(obj)
		got := read[simulated](h.simulate(h.operator(acme), obj{"intent": in, "decided_at": at}).wantStatus(http.StatusOK))
		return got.Decision.String()
	}
	if got := trials("2026-11-22T22:59:59Z") + " " + trials("2026-11-22T23:00:00Z"); got != "deny allow" {
		t.Errorf("simulations of the last second of a Sunday in Berlin and of the next one say %s, want deny allow", got)
	}
	in, _ := intent()["intent"].(obj)
	h.simulate(h.operator(acme), obj{"intent": in, "decided_at": "tomorrow"}).wantField("decided_at")
	if got := read[simulated](h.simulate(h.operator(acme), obj{"intent": in}).wantStatus(http.StatusOK)); got.Decision != engine.Deny {
		t.Errorf("a simulation without a time says %v on a Saturday, want deny", got.Decision)
	}

	h.clock.advance(48 * time.Hour) // to Monday
	for _, action := range []string{"deploy", "sql.a", "sql.b"} {
		if _, got := decide(action, "2026-11-21T10:00:00Z"); !got.Approved {
			t.Errorf("%s is not allowed on a Monday: %v", action, got.Reasons)
		}
	}
	for _, row := range rows {
		again := h.evaluate(acme, row.in).wantStatus(http.StatusOK)
		if got := read[result](again); got.DecisionID != row.got.DecisionID || got.Approved {
			t.Errorf("the repetition is %s, want the answer of Saturday", again.body)
		}
		if x := h.explain(h.operator(acme), row.got.DecisionID); x.Explanation == nil || x.Explanation.Decision != engine.Deny {
			t.Errorf("the row of Saturday is unexplained on Monday: %s", x.Unexplained)
		}
	}
	outcomes := h.batch(h.operator(acme), "each", intent(obj{"action_type": "sql.a"})["intent"], intent(obj{"action_type": "sql.b"})["intent"])
	for _, o := range outcomes {
		if !strings.Contains(string(o), `"approved":true`) {
			t.Errorf("in a batch of Monday: %s, want allow", o)
		}
	}
	h.evaluate(acme, intent(obj{"decided_at": "2026-11-23T10:00:00Z"})).wantStatus(http.StatusBadRequest)
}
