package api

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"writ/engine"
)

// A limit of 20 an hour allows exactly 20 of 200 at once. One that failed gives its place
// back, once, and a simulation takes none.
func TestEvaluate_LimitOverTime(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.rule(acme, `{"count":{"by":["agent_id"],"window":"1h"},"gt":20}`, `{"decision":"deny","reason":"too many"}`)
	token := h.operator(acme)
	var allowed, denied atomic.Int64
	var failed sync.Map
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			var answer result
			h.evaluate(acme, intent()).into(&answer)
			if answer.Approved {
				allowed.Add(1)
				failed.Store("id", answer.DecisionID)
			} else {
				denied.Add(1)
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 20 || denied.Load() != 180 {
		t.Fatalf("%d allowed and %d denied, want 20 and 180", allowed.Load(), denied.Load())
	}
	id, _ := failed.Load("id")
	for range 3 {
		h.do("POST", "/v1/actions/record", token, obj{"decision_id": id, "outcome": "failed"}).wantStatus(http.StatusOK)
	}
	for range 3 {
		in, _ := intent()["intent"].(obj)
		var got simulated
		if h.simulate(token, obj{"intent": in}).wantStatus(http.StatusOK).into(&got); got.Decision != engine.Allow {
			t.Fatalf("simulated: %v, want allow", got.Reasons)
		}
	}
	for i, want := range []bool{true, false} {
		var answer result
		if h.evaluate(acme, intent()).into(&answer); answer.Approved != want {
			t.Errorf("intent %d after a failure: %v, want %v", i, answer.Reasons, want)
		}
	}
}
