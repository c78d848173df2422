package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/api/operator"
	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestEvaluate_LimitOverTime checks that a simulation does not count towards a limit over time. A
// failed action is subtracted from the count, but only once.
func TestEvaluate_LimitOverTime(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.rule(acme, `{"count":{"by":["agent_id"],"window":"1h"},"gt":2}`, `{"decision":"deny","reason":"too many"}`)
	token := h.operator(acme)
	clerk, _ := h.key(acme, "actions:record", "budgets:release")
	h.decision(token, nil)
	id := h.decision(token, nil)
	wantDecision(t, h.evaluate(acme, intent()), "deny")
	for range 3 {
		h.do("POST", "/v1/actions/record", clerk, obj{"decision_id": id, "outcome": "failed"}).wantStatus(http.StatusOK)
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

// sharing is a store whose windows are shared by several processes.
type sharing struct {
	storage.Store
	windows storage.Windows
}

func (s sharing) Windows() storage.Windows { return s.windows }

// restarted returns h with a new server on the same store. The new server can restore counts only
// from the history.
func (h *harness) restarted(windows storage.Windows) *harness {
	h.t.Helper()
	cfg, registry := h.server.cfg, prometheus.NewRegistry()
	var err error
	cfg.Registry = registry
	cfg.Decisions, err = decision.Open(decision.Config{
		Store: sharing{h.store, windows}, Ledger: h.ledger, Scrub: scrubber(), Metrics: registry, Now: h.clock.Now, CacheBytes: 64 << 20,
	})
	must(h.t, err)
	next := *h
	next.served = make(chan error, 1)
	next.server, err = New(cfg)
	must(h.t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(h.t, err)
	next.addr = ln.Addr().String()
	go func() { next.served <- next.server.Serve(ln) }()
	h.t.Cleanup(func() {
		h.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must(h.t, next.server.Shutdown(ctx))
		must(h.t, <-next.served)
		cfg.Decisions.Close()
	})
	return &next
}

// TestDecision_Rules_ASettlementReleasesForAnotherFamilyOnly checks "A settlement frees a place or
// lowers a sum only when it is recorded by a credential outside the family of the one that decided
// (a family is the API keys that one first key made; an operator, by sub, is a family alone), or by
// one with the scope budgets:release". The test decides and settles over HTTP. A restart must not
// change the counts.
func TestDecision_Rules_ASettlementReleasesForAnotherFamilyOnly(t *testing.T) {
	for name, shared := range map[string]bool{"alone": false, "with shared windows": true} {
		t.Run(name, func(t *testing.T) {
			memory := storagetest.NewMemory()
			var windows storage.Windows
			h := start(t, func(s *setup) {
				if shared {
					windows = memory.Open().Windows()
					s.Service.Store = sharing{s.Service.Store, windows}
				}
			})
			memory.SetClock(h.clock.Now)
			h.register(acme)
			h.rule(acme, `{"all":[{"field":"action_type","op":"eq","value":"deploy"},{"count":{"by":["agent_id"],"action_type":"deploy","window":"1h"},"gt":3}]}`,
				`{"decision":"deny","reason":"too many"}`)
			h.rule(acme, `{"sum":{"by":["agent_id"],"field":"cost.amount_minor","currency":"EUR","window":"1h"},"gt":300}`,
				`{"decision":"deny","reason":"too much"}`)
			cases := h.releases()
			for _, c := range cases {
				c.settle(h)
				c.want(h, "before a restart")
			}
			memory.ForgetWindows() // a shared store may delete windows; without one, the restart loses the counts
			next := h.restarted(windows)
			for _, c := range cases {
				c.want(next, "after a restart")
				wantDecision(t, next.do("POST", "/v1/policy/evaluate", c.decides, intent(c.changes())), c.next().String())
				wantDecision(t, next.do("POST", "/v1/policy/evaluate", c.decides, intent(c.changes())), "deny")
			}
		})
	}
}

// releaseCase is an agent that uses up its limit and a settlement of its last action.
type releaseCase struct {
	name             string
	decides, settles string // these are credentials
	settlement       obj
	releases         bool
}

// releases returns a case for each pair of credentials and each settlement that lowers a count.
func (h *harness) releases() (all []*releaseCase) {
	h.t.Helper()
	mint := func(maker string, more ...string) string {
		scopes := slices.Concat(more, []string{"policy:evaluate", "actions:record", "tokens:write"})
		return read[tokenSecret](h.mint(maker, obj{"scopes": scopes}).wantStatus(http.StatusCreated)).Token
	}
	ann, err := operator.Sign([]byte(testSecret), acme, "ann@"+acme, h.clock.Now(), time.Hour)
	must(h.t, err)
	op := h.operator(acme)
	maker := mint(op)
	sister, other := mint(maker), mint(maker)
	niece, releaser := mint(other), mint(op, "budgets:release")
	h.mint(maker, obj{"scopes": []string{"budgets:release"}}).wantProblem(http.StatusForbidden, codeInsufficientScope)
	for _, pair := range []releaseCase{
		{"a key and itself", sister, sister, nil, false},
		{"a key and its sister", sister, other, nil, false},
		{"a key and its maker", sister, maker, nil, false},
		{"a key and its child", maker, sister, nil, false},
		{"a key and its niece", sister, niece, nil, false},
		{"a key and a key of another operator", sister, mint(ann), nil, true},
		{"a key and an operator", sister, op, nil, true},
		{"a key and one that may release", sister, releaser, nil, true},
		{"a key that may release, and itself", releaser, releaser, nil, true},
		{"an operator and itself", op, op, nil, false},
		{"an operator and another", op, ann, nil, true},
		{"an operator and a key", op, sister, nil, false},
		{"an operator and a key that may release", op, releaser, nil, true},
	} {
		for _, settlement := range []obj{
			{"outcome": "failed"}, {"outcome": "skipped"},
			{"outcome": "executed", "amount_minor": 0, "currency": "EUR"},
		} {
			c := pair
			c.name, c.settlement = fmt.Sprint(c.name, " ", settlement["outcome"]), settlement
			all = append(all, &c)
		}
	}
	return all
}

// changes returns the changes that make an intent of c's agent. The limit is three such intents.
func (c *releaseCase) changes() obj {
	changes := obj{"agent_id": c.name, "cost": obj{"amount_minor": 100, "currency": "EUR"}}
	if c.settlement["outcome"] == "executed" { // this outcome lowers only the sum
		changes["action_type"] = "http_get"
	}
	return changes
}

// next returns the decision about one more intent.
func (c *releaseCase) next() engine.Decision {
	if c.releases {
		return engine.Allow
	}
	return engine.Deny
}

// settle uses up the limit and then settles the last intent.
func (c *releaseCase) settle(h *harness) {
	h.t.Helper()
	for range 2 {
		h.decision(c.decides, c.changes())
	}
	c.settlement["decision_id"] = h.decision(c.decides, c.changes())
	row := read[storage.Record](h.do("POST", "/v1/actions/record", c.settles, c.settlement).wantStatus(http.StatusOK))
	if row.Settlement == nil || row.Settlement.Releases != c.releases {
		h.t.Errorf("%s: the settlement is %+v, want releases = %t", c.name, row.Settlement, c.releases)
	}
}

// want checks the decision about one more intent.
func (c *releaseCase) want(h *harness, when string) {
	h.t.Helper()
	var got simulated
	h.simulate(h.operator(acme), obj{"intent": intent(c.changes())["intent"]}).wantStatus(http.StatusOK).into(&got)
	if got.Decision != c.next() {
		h.t.Errorf("%s: %s the next is %s (%q), want %s", c.name, when, got.Decision, got.Reasons, c.next())
	}
}
