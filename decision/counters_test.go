package decision

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/decision/budget"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/registry"
)

// newCounting returns a pipeline in which an agent may do an allowed action limit times an
// hour.
func newCounting(t *testing.T, limit int) (*Service, storage.Store) {
	t.Helper()
	p, store := newPipeline(t, 1<<40)
	must.Do(t, registry.New(store).PutRule(t.Context(), corpus.Organization, limiting(limit), 0))
	return p, store
}

// limiting returns a rule by which an agent may do an allowed action limit times an hour.
func limiting(limit int) *engine.Rule {
	return &engine.Rule{
		ID: "limit", Name: "limit", IsActive: true, Priority: engine.DefaultPriority, CreatedAt: time.Now(), UpdatedAt: time.Now(),
		Condition: fmt.Sprintf(`{"count":{"by":["agent_id"],"window":"1h"},"gt":%d}`, limit),
		Action:    `{"decision":"deny","reason":"too many"}`,
	}
}

func allowed(outs []ledger.Outcome) (n int) {
	for _, out := range outs {
		if out.Err == nil && out.Record.Decision == engine.Allow {
			n++
		}
	}
	return n
}

func TestCounters_TwentyOfTwoHundredAtOnce(t *testing.T) {
	p, store := newCounting(t, 20)
	var mu sync.Mutex
	var wg sync.WaitGroup
	count := 0
	for n := range 200 {
		wg.Go(func() {
			requests := []Request{request()}
			if n%10 == 0 { // beside what is denied anyway
				requests = append(requests, request(forbidden))
			}
			outs := p.Decide(context.Background(), caller(), requests)
			mu.Lock()
			defer mu.Unlock()
			count += allowed(outs[:1])
		})
	}
	wg.Wait()
	if count != 20 {
		t.Errorf("%d were allowed, want 20", count)
	}
	p.counters = budget.New(budget.Config{History: store}) // as after a restart
	if n := allowed(p.Decide(t.Context(), caller(), []Request{request()})); n != 0 {
		t.Error("another is allowed after a restart")
	}
}

// TestCounters_DuplicatesTakeOnePlace checks an intent that is sent many times at once. It is
// allowed once and takes one place.
func TestCounters_DuplicatesTakeOnePlace(t *testing.T) {
	p, _ := newCounting(t, 2)
	same := request()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { p.Decide(context.Background(), caller(), []Request{same}) })
	}
	wg.Wait()
	if got := decisions(p.Decide(t.Context(), caller(), []Request{request(), request()})); got != "policy.allowed rule.deny" {
		t.Errorf("Decide = %s, want one more, and then none", got)
	}
}

// TestCounters_ReplaysTakeNoPlace checks that a replay gives the first answer and takes no
// place.
func TestCounters_ReplaysTakeNoPlace(t *testing.T) {
	p, _ := newCounting(t, 2)
	first := request()
	for range 5 {
		if n := allowed(p.Decide(t.Context(), caller(), []Request{first})); n != 1 {
			t.Fatal("a replay is not what it was")
		}
	}
	if got := decisions(p.Decide(t.Context(), caller(), []Request{request(), request(), first})); got != "policy.allowed rule.deny policy.allowed" {
		t.Errorf("Decide = %s, want one more, and then none", got)
	}
}

// TestCounters_RefusedBatchesTakeNoPlace checks that a refused batch takes no place.
func TestCounters_RefusedBatchesTakeNoPlace(t *testing.T) {
	p, _ := newCounting(t, 2)
	decide := func(requests ...Request) string {
		t.Helper()
		outs := must.Get(p.DecideAll(t.Context(), caller(), requests))(t)
		return decisions(outs)
	}
	for _, step := range []struct{ got, want string }{
		{decide(request(), request(), request()), "batch.refused batch.refused rule.deny"},
		{decide(request(), request(forbidden)), "batch.refused action.not_allowed"},
		{decide(request(), request()), "policy.allowed policy.allowed"},
		{decide(request()), "rule.deny"},
	} {
		if step.got != step.want {
			t.Errorf("DecideAll = %s, want %s", step.got, step.want)
		}
	}
	if _, err := p.DecideAll(t.Context(), caller(), []Request{request(), request(unknown)}); err == nil {
		t.Error("an unknown policy is no error")
	}
}
