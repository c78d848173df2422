package decision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/registry"
)

// queryFunc is a query that a test writes.
type queryFunc func(*engine.Input) (engine.Decision, []engine.Code, error)

func (f queryFunc) Evaluate(in *engine.Input) (engine.Decision, []engine.Code, error) { return f(in) }

func (queryFunc) Size() int { return 1 }

// prepareRego prepares the product's queries.
func prepareRego(p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, libraries []engine.Library) (Query, error) {
	return rego.Prepare(p, rules, lists, libraries...)
}

// prepareAs prepares f in place of every query.
func prepareAs(f queryFunc) func(*engine.ActionPolicy, []engine.Rule, condition.Lists, []engine.Library) (Query, error) {
	return func(*engine.ActionPolicy, []engine.Rule, condition.Lists, []engine.Library) (Query, error) {
		return f, nil
	}
}

// verifiedPipeline is a service whose decisions are verified only when the test calls for it.
type verifiedPipeline struct {
	*Service
	verifier *verifier // of Service, which a benchmark turns off
	docs     *registry.Registry
	log      bytes.Buffer
}

func newVerified(t testing.TB, evaluations int64, every uint64, prepare func(*engine.ActionPolicy, []engine.Rule, condition.Lists, []engine.Library) (Query, error)) *verifiedPipeline {
	t.Helper()
	v := &verifiedPipeline{}
	var store storage.Store
	v.Service, store = newPipeline(t, evaluations, func(c *Config) {
		c.VerifyEvery, c.PrepareQuery, c.Log = every, prepare, slog.New(slog.NewTextHandler(&v.log, nil))
	})
	v.docs, v.verifier = v.Documents, v.Service.verifier
	t.Cleanup(store.Watch(v.changed))
	return v
}

// verifyAll verifies all waiting decisions and returns the results so far.
func (v *verifiedPipeline) verifyAll(t *testing.T) map[verified]int {
	t.Helper()
	for len(v.verifier.queue) > 0 {
		v.verifier.results[v.verifier.verify(t.Context(), <-v.verifier.queue)].Inc()
	}
	return v.count(t)
}

// count returns the results so far.
func (v *verifiedPipeline) count(t testing.TB) map[verified]int {
	t.Helper()
	got := make(map[verified]int)
	for result, counter := range v.verifier.results {
		var m dto.Metric
		must.Do(t, counter.Write(&m))
		if n := int(m.GetCounter().GetValue()); n > 0 {
			got[result] = n
		}
	}
	return got
}

func (v *verifiedPipeline) rule(t testing.TB, condition, decision string) {
	t.Helper()
	must.Do(t, v.docs.PutRule(t.Context(), corpus.Organization, &engine.Rule{
		ID: uuid.NewString(), Name: "r", Condition: condition, Action: fmt.Sprintf(`{"decision":%q}`, decision), Priority: 100, IsActive: true,
	}, 100))
}

// TestVerifier_DecidesByWhatTheDecisionDid checks that a verification uses the versions, the
// agent's status and the meter of its decision. All of these have changed when the decision is
// verified.
func TestVerifier_DecidesByWhatTheDecisionDid(t *testing.T) {
	v := newVerified(t, 7, 1, prepareRego)
	decide := func(want string, requests ...Request) {
		t.Helper()
		if got := decisions(v.Decide(t.Context(), caller(), requests)); got != want {
			t.Errorf("Decide = %s, want %s", got, want)
		}
	}
	decide("policy.allowed action.not_allowed", request(), request(forbidden))
	v.rule(t, `{"metadata.env":"prod"}`, "approval_required")
	v.rule(t, `{"rego":"input.intent.metadata.env == \"dr\""}`, "deny")
	env := func(env string) Request {
		return request(func(in *engine.Intent) { in.Metadata = map[string]string{"env": env} })
	}
	decide("rule.approval_required rule.deny", env("prod"), env("dr"))
	agent := &engine.Agent{ID: uuid.NewString(), Name: "a", ExternalID: corpus.Agent, Status: engine.AgentDisabled}
	must.Do(t, v.docs.PutAgent(t.Context(), corpus.Organization, agent, 10))
	decide("agent.disabled", request())
	next := corpus.ReferencePolicy()
	next.Version++
	next.Status = engine.StatusRevoked
	must.Get(v.docs.PutPolicy(t.Context(), next, 0))(t)
	decide("policy.inactive policy.inactive policy.inactive", request(), request(), request())
	if got, want := v.verifyAll(t), (map[verified]int{verifiedSame: 8}); !cmp.Equal(got, want) {
		t.Errorf("verified %v, want %v\n%s", got, want, &v.log)
	}
	if stats := v.Sets.queries.Stats(); stats.Loads != 3 {
		t.Errorf("%d queries were prepared, want 3: of one version, with rules, of another", stats.Loads)
	}
}

func TestVerifier_CountsAndLogsWhatDiffers(t *testing.T) {
	const secret = "canary"
	stated := func(in *engine.Intent) { in.Metadata = map[string]string{"note": secret} }
	tests := []struct {
		name    string
		query   queryFunc
		want    map[verified]int
		logged  []string
		request Request
	}{
		{"another decision", func(*engine.Input) (engine.Decision, []engine.Code, error) {
			return engine.Deny, []engine.Code{engine.CodeUsageLimit}, nil
		}, map[verified]int{verifiedDiffers: 1}, []string{"decide differently", "engine=allow engine_codes=[policy.allowed] rego=deny rego_codes=[usage.limit]"}, request(stated)},
		{"other codes", func(*engine.Input) (engine.Decision, []engine.Code, error) {
			return engine.Deny, []engine.Code{engine.CodeUsageLimit}, nil
		}, map[verified]int{verifiedDiffers: 1}, []string{"engine=deny", "rego=deny"}, request(stated, forbidden)},
		{"an error", func(in *engine.Input) (engine.Decision, []engine.Code, error) {
			return engine.Deny, nil, errors.New(in.Intent.Metadata["note"])
		}, map[verified]int{verifiedError: 1}, nil, request(stated)},
		{"a panic", func(in *engine.Input) (engine.Decision, []engine.Code, error) {
			panic(in.Intent.Metadata["note"])
		}, map[verified]int{verifiedError: 1}, nil, request(stated)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := newVerified(t, 100, 1, prepareAs(tt.query))
			outs := v.Decide(t.Context(), caller(), []Request{tt.request})
			if got := v.verifyAll(t); !cmp.Equal(got, tt.want) {
				t.Errorf("verified %v, want %v", got, tt.want)
			}
			log := v.log.String()
			for _, want := range tt.logged {
				if !strings.Contains(log, want) || !strings.Contains(log, outs[0].Record.DecisionID) {
					t.Errorf("logged %q, want %q and the decision %s", log, want, outs[0].Record.DecisionID)
				}
			}
			if n := strings.Count(log, "\n"); n != min(1, len(tt.logged)) || strings.Contains(log, secret) {
				t.Errorf("logged %d lines: %q, want at most one, without metadata", n, log)
			}
		})
	}
}

// TestVerifier_LogsOnceWhatCannotBePrepared checks a policy that Rego cannot express. Each
// verification is an error, but each version is logged only once.
func TestVerifier_LogsOnceWhatCannotBePrepared(t *testing.T) {
	v := newVerified(t, 100, 1, prepareRego)
	v.rule(t, `{"cel":"size(intent.resource) > 500"}`, "deny")
	v.Decide(t.Context(), caller(), []Request{request(), request(), request()})
	if got, want := v.verifyAll(t), (map[verified]int{verifiedError: 3}); !cmp.Equal(got, want) {
		t.Errorf("verified %v, want %v", got, want)
	}
	if n := strings.Count(v.log.String(), "cannot be prepared"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, &v.log)
	}
}

// TestVerifier_ComparesNoWorkThatWasEnded checks conditions that the engine stopped because
// they took too much work. Rego may have continued, so the two decisions are not compared.
func TestVerifier_ComparesNoWorkThatWasEnded(t *testing.T) {
	v := newVerified(t, 100, 1, prepareAs(func(*engine.Input) (engine.Decision, []engine.Code, error) {
		return engine.Allow, []engine.Code{engine.CodePolicyAllowed}, nil
	}))
	v.rule(t, `{"rego":"n := input.intent.cost.amount_minor; count([1 | some a in numbers.range(1, n); some b in numbers.range(1, n); a + b == -1]) > 0"}`, "deny")
	costly := request(func(in *engine.Intent) { in.Cost.AmountMinor = 4000 })
	if got := decisions(v.Decide(t.Context(), caller(), []Request{costly})); got != "rule.deny" {
		t.Errorf("Decide = %s, want rule.deny: the condition takes too much", got)
	}
	if got, want := v.verifyAll(t), (map[verified]int{verifiedError: 1}); !cmp.Equal(got, want) {
		t.Errorf("verified %v, want %v\n%s", got, want, &v.log)
	}
}

func TestVerifier_SamplesWhatWasDecided(t *testing.T) {
	v := newVerified(t, 1000, 3, prepareRego)
	count := func(want int, what string) {
		t.Helper()
		if got := v.verifyAll(t)[verifiedSame]; got != want {
			t.Errorf("%s: %d verified, want %d\n%s", what, got, want, &v.log)
		}
	}
	for range 10 {
		v.Decide(t.Context(), caller(), []Request{request()})
	}
	count(3, "one decision in three of ten")
	v.verifier.every = 1
	again := request()
	v.Decide(t.Context(), caller(), []Request{again, request(unknown)})
	v.Decide(t.Context(), caller(), []Request{again})
	count(4, "one decision, an unknown policy and a replay")
	// If a batch is refused because of one intent, each intent is verified with its own
	// decision.
	if _, err := v.DecideAll(t.Context(), caller(), []Request{request(), request(forbidden)}); err != nil {
		t.Fatal(err)
	}
	count(6, "a batch that is refused")
	v.cfg.Core = decider(func(*engine.Input) (engine.Result, error) {
		return engine.Result{Decision: engine.Deny, Findings: []engine.Finding{{Code: "my.code", Outcome: engine.Deny, Reason: "my.code: no"}}}, nil
	})
	v.Decide(t.Context(), caller(), []Request{request()})
	count(6, "a core's decision")
}

// TestVerifier_DropsWhatItHasNoRoomFor checks that nothing waits for a verifier that is slow or
// does not run.
func TestVerifier_DropsWhatItHasNoRoomFor(t *testing.T) {
	v := newVerified(t, 1<<40, 1, prepareRego)
	for range maxUnverified + 5 {
		if got := decisions(v.Decide(t.Context(), caller(), []Request{request()})); got != "policy.allowed" {
			t.Fatalf("Decide = %s, want policy.allowed", got)
		}
	}
	if got, want := v.verifyAll(t), (map[verified]int{verifiedSame: maxUnverified, verifiedDropped: 5}); !cmp.Equal(got, want) {
		t.Errorf("verified %v, want %v", got, want)
	}
}

func TestVerifier_RunsUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sets := newSets(setsConfig{maxBytes: 1 << 20, prepare: prepareAs(func(*engine.Input) (engine.Decision, []engine.Code, error) {
			return engine.Allow, []engine.Code{engine.CodePolicyAllowed}, nil
		})})
		v := newVerifier(sets, 1, slog.New(slog.DiscardHandler), newVerifications(prometheus.NewRegistry()))
		policy := must.Get(engine.CompilePolicy(corpus.ReferencePolicy()))(t)
		set := engine.Set{Policy: policy, Rules: engine.CompileRules(nil, engine.Options{})}
		in := &engine.Input{Intent: corpus.AllowedIntent(), Agent: engine.AgentActive}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() {
			v.put(v.sample("", set, in, engine.Evaluate(policy, set.Rules, in)))
		}()
		v.run(ctx)
		if ctx.Err() == nil || len(v.queue) > 0 {
			t.Errorf("Run returned with %d that wait and %v, want at the end of its context with none", len(v.queue), ctx.Err())
		}
	})
}

// TestVerifier_ChangesNoDecision checks that a difference does not change any decision.
func TestVerifier_ChangesNoDecision(t *testing.T) {
	v := newVerified(t, 100, 1, prepareAs(func(*engine.Input) (engine.Decision, []engine.Code, error) {
		return engine.Allow, []engine.Code{engine.CodePolicyAllowed}, nil
	}))
	r := request(forbidden)
	outs := v.Decide(t.Context(), caller(), []Request{r})
	v.verifyAll(t)
	again := v.Decide(t.Context(), caller(), []Request{r})
	for _, outs := range [][]ledger.Outcome{outs, again} {
		if got := outs[0].Record.Decision; got != engine.Deny {
			t.Errorf("decision = %v, want deny whatever the query says", got)
		}
	}
}
