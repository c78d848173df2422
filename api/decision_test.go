package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/storage/receipt"
)

func TestDecision_Rules_DefaultPriorityIs100(t *testing.T) {
	h := start(t)
	var made engine.Rule
	h.do("POST", "/v1/rules", h.operator(acme), obj{"name": "n", "condition": "{}", "action": `{"decision":"deny"}`}).
		wantStatus(http.StatusCreated).into(&made)
	if made.Priority != 100 {
		t.Errorf("priority of a rule without one = %d, want 100", made.Priority)
	}
}

func TestDecision_Rules_AnErrorIsCountedInTheMetrics(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.rule(acme, `{"cel":"intent.metadata.nothing == 'x'"}`, `{"decision":"deny"}`)
	wantDecision(t, h.evaluate(acme, intent()), "deny")
	for cause, n := range map[string]int{"missing": 1, "function": 0, "not_decimal": 0, "work": 0, "broken": 0} {
		want := fmt.Sprintf("\nwrit_rule_condition_errors_total{cause=%q} %d\n", cause, n)
		if text := h.admin("/metrics").Body.String(); !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestDecision_Idempotency_AReplayCarriesIdempotentReplayed(t *testing.T) {
	h := start(t)
	h.register(acme)
	for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
		for _, body := range map[string]obj{"allow": intent(), "deny": intent(obj{"action_type": "sql.drop"})} {
			for _, want := range []string{"", "true"} {
				r := h.do("POST", path, h.operator(acme), body)
				r.wantHeader("Idempotent-Replayed", want)
			}
		}
	}
}

func TestDecision_Receipts_PublicKeysAreAtWellKnownJWKS(t *testing.T) {
	h := start(t)
	h.register(acme)
	keys, err := receipt.ParseKeys(h.do("GET", "/.well-known/jwks.json", "", nil).wantStatus(http.StatusOK).body)
	must(t, err)
	res := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
	if err := receipt.Verify(res.Receipt, keys, h.clock.Now()); err != nil {
		t.Errorf("Verify of a receipt against the published keys = %v, want nil", err)
	}
}
