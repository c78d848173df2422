package ledger

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
	"writ.example/writ/internal/metricstest"
)

func TestMetrics_CountWhatBecameOfCommits(t *testing.T) {
	store := newFake()
	reg := prometheus.NewRegistry()
	l := open(t, store, func(c *Config) { c.Metrics = reg })
	mustDecide(t, l, "acme", intent(1))
	mustDecide(t, l, "acme", intent(1))
	for i, d := range []engine.Decision{engine.Allow, engine.Deny, engine.ApprovalRequired, engine.Deny} {
		if _, err := decide(t.Context(), l, "acme", entry(intent(2+i), d)); err != nil {
			t.Fatal(err)
		}
	}
	other := intent(1)
	other.Resource = "other"
	store.set(func(f *fake) { f.faults = []fault{none, lost, lost} })
	for _, in := range []*engine.Intent{other, intent(9)} {
		if _, err := decide(t.Context(), l, "acme", entry(in, engine.Allow)); err == nil {
			t.Fatal("Commit = nil, want an error")
		}
	}
	all := metricstest.Read(t, reg)
	for name, want := range map[string]float64{
		"writ_decisions_total allow":             2,
		"writ_decisions_total deny":              2,
		"writ_decisions_total approval_required": 1,
		"writ_decision_replays_total":            1,
		"writ_ledger_conflicts_total":            1,
		"writ_ledger_commit_failures_total":      1,
	} {
		if got := all[name].Value; got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if got, ok := all["writ_ledger_queue_depth"]; !ok || got.Value != 0 {
		t.Errorf("queue depth = %v, want 0", got)
	}
	// The failed batch was tried twice.
	for name, want := range map[string]uint64{"writ_ledger_batch_size": 9, "writ_ledger_commit_seconds": 9, "writ_ledger_queue_wait_seconds": 8} {
		if got := all[name]; got.Count != want || got.Buckets == 0 || !got.Native {
			t.Errorf("%s = %+v, want %d samples in classic and native buckets", name, got, want)
		}
	}
	for name := range all {
		if strings.Contains(name, "acme") || strings.Contains(name, "team-a") {
			t.Errorf("the metric %s is labelled by organization or agent", name)
		}
	}
}

func TestMetrics_RegisteredUntilClose(t *testing.T) {
	reg := prometheus.NewRegistry()
	withReg := func(c *Config) { c.Metrics = reg }
	l := open(t, newFake(), withReg)
	if _, err := Open(t.Context(), Config{Store: newFake(), Signer: testSigner(1), Scrub: marking{}, Metrics: reg}); err == nil {
		t.Error("Open of a second ledger on one registry = nil, want an error")
	}
	if len(metricstest.Read(t, reg)) == 0 {
		t.Error("the failed Open took the first ledger's metrics away")
	}
	must(t, l.Close(t.Context()))
	if all := metricstest.Read(t, reg); len(all) != 0 {
		t.Errorf("metrics after Close = %v, want none", all)
	}
	open(t, newFake(), withReg)
}
