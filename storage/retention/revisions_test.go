package retention

import (
	"errors"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// TestRevisions_GoWithTheRowsThatMayNeedThem sweeps rules that were replaced at different times.
func TestRevisions_GoWithTheRowsThatMayNeedThem(t *testing.T) {
	w := newWorld(t)
	docs := registry.New(w.store)
	w.cfg.Revised, w.cfg.Revisions = docs.EachRevised, docs.SweepRevisions
	// replaced keeps a revision of a rule that is replaced at an age.
	replaced := func(org string, age time.Duration) {
		t.Helper()
		if _, err := w.store.Update(t.Context(), org, func(tx storage.Tx) error {
			return errors.Join(storage.Retire(tx, storage.RuleKind, org, "r", false, now.Add(-age)),
				storage.Rules.Put(tx, org, &engine.Rule{ID: "r"}))
		}); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := docs.RulesAndLibraries(t.Context(), org); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(org string) (ages []time.Duration) {
		t.Helper()
		all, _, err := docs.RuleRevisions(t.Context(), org, "r", storage.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all[1:] { // after the current one
			ages = append(ages, now.Sub(v.ReplacedAt))
		}
		return ages
	}
	const day = 24 * time.Hour
	for _, org := range []string{"free", "pro", "ever", "unknown"} {
		for _, age := range []time.Duration{50 * day, 40 * day, 25 * time.Hour, 24*time.Hour + time.Minute, 23 * time.Hour} {
			replaced(org, age)
		}
	}
	w.commit("free", 3, 26*time.Hour)
	w.store.org = "free" // its records cannot be removed
	w.sweeper().pass(t.Context())
	if got := len(kept("free")); got != 4 {
		t.Errorf("%d revisions are kept while a record is left, want 4", got)
	}
	w.store.org = ""
	w.cfg.Metrics = nil
	w.sweeper().pass(t.Context())
	for org, want := range map[string]int{"free": 2, "pro": 3, "ever": 4, "unknown": 4} {
		if got := kept(org); len(got) != want {
			t.Errorf("the kept revisions of %s were replaced %v ago, want %d of them", org, got, want)
		}
	}
}
