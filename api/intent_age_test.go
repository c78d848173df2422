package api

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDecision_IntentAge checks "with --intent-age, an intent that is older than twice that is
// refused instead of remembered". A new intent is refused if its issued_at is more than the age
// before or after now. Repetitions, also of approved intents, are answered as without the flag.
func TestDecision_IntentAge(t *testing.T) {
	const most = 6 * time.Hour
	d := openDesk(t, func(s *setup) { s.Service.IntentAge, s.Service.ApprovalTTL = most, 72*time.Hour })
	evaluate := func(body obj) *reply { return d.do("POST", "/v1/policy/evaluate", d.asker, body) }
	issued := func(ago time.Duration) obj {
		return intent(obj{"issued_at": d.clock.Now().Add(-ago).Format(time.RFC3339Nano)})
	}
	before := d.usage(acme)
	for _, ago := range []time.Duration{most + time.Millisecond, -most - time.Millisecond, 3 * most, -3 * most, 200 * 1460 * most, -200 * 1460 * most} {
		p := evaluate(issued(ago)).wantProblem(http.StatusBadRequest, codeIssuedOutOfRange)
		if len(p.Errors) != 1 || p.Errors[0].Field != "intent.issued_at" || !strings.Contains(p.Errors[0].Message, "6h0m0s") {
			t.Errorf("issued %v ago: the problem names %v, want intent.issued_at and the age", ago, p.Errors)
		}
	}
	same(t, "the meters after refusals", before, d.usage(acme))
	if rows := d.history(acme); len(rows) != 0 {
		t.Errorf("refusals left %d rows", len(rows))
	}
	for _, ago := range []time.Duration{most - time.Minute, -most} {
		wantDecision(t, evaluate(issued(ago)), "allow")
	}

	allowed := issued(most - time.Minute)
	first := evaluate(allowed).wantStatus(http.StatusOK)
	held, id := d.hold()
	d.judge(id, "approved", obj{"approved_for": 24 * 3600}).wantStatus(http.StatusOK)
	again := func(when string) {
		t.Helper()
		if got := evaluate(allowed).wantStatus(http.StatusOK); string(got.body) != string(first.body) {
			t.Errorf("%s the repetition is %s, want the first answer", when, got.body)
		}
	}
	again("at once")
	d.clock.advance(most - time.Hour)
	again("within twice the age")
	changed := obj{"policy_id": policyID, "intent": obj{}}
	for k, v := range allowed["intent"].(obj) {
		changed["intent"].(obj)[k] = v
	}
	changed["intent"].(obj)["resource"] = "prod/other"
	evaluate(changed).wantProblem(http.StatusConflict, codeIntentConflict)
	d.clock.advance(2 * time.Hour)
	evaluate(allowed).wantProblem(http.StatusBadRequest, codeIssuedOutOfRange)

	d.clock.advance(most) // the held intent gets older than twice the limit
	wantDecision(t, d.redeem(held, id), "allow")
	wantDecision(t, d.redeem(held, id), "allow")

	got := d.batch(d.operator(acme), "each", issued(0)["intent"], issued(2 * most)["intent"])
	if !strings.Contains(string(got[0]), `"approved":true`) || !strings.Contains(string(got[1]), codeIssuedOutOfRange) {
		t.Errorf("each of a batch: %s, want allow and a problem", got)
	}
	d.do("POST", "/v1/policy/evaluate/batch", d.operator(acme), obj{"mode": "all", "policy_id": policyID, "intents": []any{issued(0)["intent"], issued(2 * most)["intent"]}}).
		wantProblem(http.StatusBadRequest, codeIssuedOutOfRange)
}

// TestIntentAge_IsOffByDefault checks that by default an intent with any issued_at is decided.
func TestIntentAge_IsOffByDefault(t *testing.T) {
	h := start(t)
	h.register(acme)
	for _, at := range []string{"1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z"} {
		wantDecision(t, h.evaluate(acme, intent(obj{"issued_at": at})), "allow")
	}
}
