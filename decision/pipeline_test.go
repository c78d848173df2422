package decision

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

// open is a scrubber that changes nothing.
type open struct{}

func (open) Text(s string) string                              { return s }
func (open) Identity(s string) string                          { return s }
func (open) Name(_, folded string) string                      { return folded }
func (open) Resource(_, projection string) string              { return projection }
func (open) Values(values map[string]string) map[string]string { return values }

// config returns a configuration with a store and a plan for so many evaluations.
func config(store storage.Store, l *ledger.Ledger, evaluations int64) Config {
	return Config{
		Store: store, Ledger: l, Scrub: shouting{}, Metrics: prometheus.NewRegistry(), CacheBytes: 16 << 20,
		Plans: map[string]engine.Plan{"free": {Name: "free", Evaluations: evaluations}},
	}
}

// shouting is a scrubber that turns the reasons of a core to upper case.
type shouting struct{ open }

func (shouting) Text(s string) string { return strings.ToUpper(s) }

func (shouting) Spellings(identity string) []string { return []string{identity} }
func (shouting) Stored(identity string) []string    { return []string{identity} }

// newPipeline returns a service for the reference policy, with a store in memory and a plan for
// so many evaluations. It does nothing in the background.
func newPipeline(t testing.TB, evaluations int64, changes ...func(*Config)) (*Service, storage.Store) {
	t.Helper()
	store := must.Get(embedded.Open("db", embedded.Options{FS: vfs.NewMem(), Log: slog.New(slog.DiscardHandler)}))(t)
	docs := registry.New(store)
	must.Get(docs.PutPolicy(t.Context(), corpus.ReferencePolicy(), 0))(t)
	l, err := ledger.Open(t.Context(), ledger.Config{
		Store: store, Scrub: open{}, Signer: receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))),
	})
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, errors.Join(l.Close(context.Background()), store.Close())) })
	cfg := config(store, l, evaluations)
	for _, change := range changes {
		change(&cfg)
	}
	s := must.Get(newService(cfg))(t)
	return s, store
}

func caller() Caller { return Caller{Organization: corpus.Organization, Credential: "key"} }

// request returns a request whose intent has a new id.
func request(changes ...func(*engine.Intent)) Request {
	in := corpus.AllowedIntent()
	in.IntentID = uuid.NewString()
	for _, change := range changes {
		change(in)
	}
	return Request{Intent: in}
}

func forbidden(in *engine.Intent) { in.ActionType = "never.allowed" }

func unknown(in *engine.Intent) { in.PolicyID = uuid.NewString() }

// decisions formats the outcomes: allow, deny with its first code, or the error.
func decisions(outs []ledger.Outcome) string {
	var all []string
	for _, out := range outs {
		switch {
		case errors.Is(out.Err, storage.ErrNotFound):
			all = append(all, "unknown")
		case out.Err != nil:
			all = append(all, out.Err.Error())
		default:
			code, _, _ := strings.Cut(out.Record.Reasons[0], ":")
			all = append(all, code)
		}
	}
	return strings.Join(all, " ")
}

func TestDecide_EachByItselfInOneCommit(t *testing.T) {
	p, store := newPipeline(t, 3)
	twice := request()
	outs := p.Decide(t.Context(), caller(), []Request{twice, request(unknown), request(forbidden), twice, request()})
	if got, want := decisions(outs), "policy.allowed unknown action.not_allowed policy.allowed usage.limit"; got != want {
		t.Errorf("Decide = %s, want %s", got, want)
	}
	if !outs[3].Replayed || outs[3].Record.DecisionID != outs[0].Record.DecisionID {
		t.Error("an intent given twice has two decisions")
	}
	tip := must.Get(store.Tip(t.Context()))(t)
	if err := store.Heads(t.Context(), tip.ID, 0, func(h receipt.SignedHead) error {
		if tip.Seq != 1 || h.Size != 3 {
			t.Errorf("head %d of %d over %d decisions, want one over 3", h.Seq, tip.Seq, h.Size)
		}
		return nil
	}); err != nil || tip.Seq == 0 {
		t.Errorf("Heads = %v of %d, want one", err, tip.Seq)
	}
	if n, err := store.Metered(t.Context(), corpus.Organization, storage.MonthOf(time.Now())); n != 3 || err != nil {
		t.Errorf("Metered = %d, %v, want 3", n, err)
	}
}

func TestDecideAll_AllOrNone(t *testing.T) {
	p, _ := newPipeline(t, 100)
	decide := func(requests ...Request) string {
		t.Helper()
		outs := must.Get(p.DecideAll(t.Context(), caller(), requests))(t)
		return decisions(outs)
	}
	allowed, refused := request(), request()
	for _, step := range []struct {
		name, got, want string
	}{
		{"all allowed", decide(allowed, request()), "policy.allowed policy.allowed"},
		{"one denied", decide(refused, request(forbidden), allowed), "batch.refused action.not_allowed policy.allowed"},
		{"refused before", decide(refused, request()), "batch.refused batch.refused"},
		{"allowed before", decide(allowed, request()), "policy.allowed policy.allowed"},
	} {
		if step.got != step.want {
			t.Errorf("%s: %s, want %s", step.name, step.got, step.want)
		}
	}
	var item *ItemError
	if outs, err := p.DecideAll(t.Context(), caller(), []Request{request(), request(unknown)}); !errors.As(err, &item) || item.Index != 1 || outs != nil {
		t.Errorf("DecideAll of an unknown policy = %v, %v, want an error of request 1", outs, err)
	}
}

// TestDecideAll_Races checks callers that share intents and race. Each caller must get the
// decision that stands. In a batch with a denied intent, none of the caller's own intents may
// be allowed.
func TestDecideAll_Races(t *testing.T) {
	p, store := newPipeline(t, 1<<40)
	for range 50 {
		shared := []Request{request(), request(), request()}
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				own := request()
				if n%2 == 1 {
					own = request(forbidden)
				}
				outs, err := p.DecideAll(context.Background(), caller(), []Request{shared[n%3], own, shared[(n+1)%3]})
				if err != nil {
					t.Errorf("DecideAll = %v", err)
					return
				}
				var allowed, others int
				for i, out := range outs {
					stands, err := store.Decided(context.Background(), corpus.Organization, out.Record.IntentID, "")
					if err != nil || stands.DecisionID != out.Record.DecisionID || stands.Decision != out.Record.Decision {
						t.Errorf("answered %v, while %v, %v stands", out.Record, stands, err)
					}
					if out.Record.Decision == engine.Allow {
						allowed++
						if out.Replayed {
							others++
						}
					}
					if i == 1 && n%2 == 1 && out.Record.Decision != engine.Deny {
						t.Error("a forbidden intent is not denied")
					}
				}
				if allowed < 3 && allowed > others {
					t.Errorf("%d of 3 were allowed, of which %d had been before: want all or none of the new ones", allowed, others)
				}
			})
		}
		wg.Wait()
	}
}

// decider is a core that decides with a function.
type decider func(*engine.Input) (engine.Result, error)

func (f decider) Evaluate(_ context.Context, _ engine.Set, in *engine.Input) (engine.Result, error) {
	return f(in)
}

// TestDecision_DecidedAt_IsTheRowsOwnTime: "Every engine, explanation and repetition sees the row's." Each
// evaluation of a batch sees the time of its own row, in Rego and in a core.
func TestDecision_DecidedAt_IsTheRowsOwnTime(t *testing.T) {
	seen := map[string]time.Time{} // by the id of the intent
	see := func(intent string, at time.Time) { seen[intent] = at }
	for name, change := range map[string]func(*Config){
		"a rule": func(c *Config) {
			c.CompileRego = func(string) (engine.RegoCondition, error) {
				return &watch{func(in *engine.RegoInput) { see(in.Intent.IntentID, in.DecidedAt) }}, nil
			}
		},
		"a core": func(c *Config) {
			c.Core = decider(func(in *engine.Input) (engine.Result, error) {
				see(in.Intent.IntentID, in.DecidedAt)
				return engine.Result{Decision: engine.Allow, Findings: []engine.Finding{{Code: engine.CodePolicyAllowed, Outcome: engine.Allow, Reason: "policy.allowed: yes"}}}, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, change)
			must.Do(t, s.Documents.PutRule(t.Context(), corpus.Organization, &engine.Rule{
				ID: uuid.NewString(), Name: "r", Condition: `{"rego":"x"}`, Action: `{"decision":"deny"}`, IsActive: true,
			}, 0))
			requests := []Request{request(), request(), request()}
			for i, out := range s.Decide(t.Context(), caller(), requests) {
				at, ok := seen[requests[i].Intent.IntentID]
				if out.Err != nil || !ok || !at.Equal(out.Record.DecidedAt) || at != at.UTC().Truncate(time.Millisecond) {
					t.Errorf("intent %d: evaluated at %v, %v, and its row is of %v, %v", i, at, ok, out.Record.DecidedAt, out.Err)
				}
			}
		})
	}
}

// watch is a condition that never matches, and sees its inputs.
type watch struct{ see func(*engine.RegoInput) }

func (w *watch) Match(in *engine.RegoInput) (bool, error) {
	w.see(in)
	return false, nil
}

func (*watch) Fits(engine.Decision) error { return nil }
func (*watch) Lists() []string            { return nil }
func (*watch) Documents() []string        { return nil }
func (*watch) Libraries() []string        { return nil }
func (*watch) Review() condition.Review   { return condition.Review{} }
func (*watch) Size() int                  { return 1 }
func (*watch) Reads() engine.RegoReads    { return engine.RegoReads{Resource: true, Agent: true} }
func (*watch) Messages(*engine.RegoInput, *engine.Intent) []string {
	return nil
}
func (*watch) Explain(*engine.RegoInput) ([]engine.ExplainedLeaf, int) {
	return nil, -1
}

func TestDecide_ACoreThatFailsAllowsNothing(t *testing.T) {
	p, _ := newPipeline(t, 100)
	p.cfg.Core = decider(func(*engine.Input) (engine.Result, error) { return engine.Result{}, errors.New("gone") })
	r := request()
	var core *CoreError
	if outs := p.Decide(t.Context(), caller(), []Request{r}); !errors.As(outs[0].Err, &core) || outs[0].Record != nil {
		t.Errorf("Decide = %+v, want the core's error", outs[0])
	}
	p.cfg.Core = decider(func(*engine.Input) (engine.Result, error) {
		return engine.Result{Decision: engine.Deny, Findings: []engine.Finding{{Code: "my.code", Outcome: engine.Deny, Reason: "my.code: no"}}}, nil
	})
	if outs := p.Decide(t.Context(), caller(), []Request{r}); outs[0].Err != nil || outs[0].Record.Reasons[0] != "MY.CODE: NO" {
		t.Errorf("Decide = %+v, want the core's reason, scrubbed", outs[0])
	}
	p.cfg.Core = decider(func(*engine.Input) (engine.Result, error) { return engine.Result{}, errors.New("gone") })
	if outs := p.Decide(t.Context(), caller(), []Request{r}); outs[0].Err != nil || !outs[0].Replayed {
		t.Errorf("Decide of a replay without the core = %+v, want the first decision", outs[0])
	}
}
