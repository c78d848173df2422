package registry_test

import (
	"errors"
	"fmt"
	"time"

	"writ/engine"
	"writ/storage"
)

// rule returns a rule with every field set.
func rule(id string) *engine.Rule {
	return &engine.Rule{
		ID: id, Name: "no deploys on Friday", Description: "nor on \"Saturday\"",
		Condition: `{"action_type":"deploy"}`, Action: `{"decision":"deny"}`,
		Priority: engine.DefaultPriority, IsActive: true, CreatedAt: noon, UpdatedAt: noon.Add(time.Second),
	}
}

func (w *world) wantRules(org string, want ...engine.Rule) {
	w.Helper()
	got, _, err := w.AllRules(w.ctx, org)
	w.must("AllRules", err)
	w.wantSame("AllRules", got, want)
}

var ruleTests = []test{
	{"PutRule stores a new rule or replaces the one with its ID", func(w *world) {
		w.wantRules("org")
		r := rule("r")
		w.must("PutRule", w.PutRule(w.ctx, "org", r, 0))
		w.wantRules("org", *r)
		changed := rule("r")
		changed.IsActive = false
		w.must("PutRule", w.PutRule(w.ctx, "org", changed, 0))
		w.wantRules("org", *changed)
	}},
	{"UpdateRule replaces the rule by what f makes of it", func(w *world) {
		w.must("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0))
		got, err := w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) {
			w.wantSame("f's rule", r, *rule("r"))
			r.Priority = 7
			return r, nil
		})
		w.must("UpdateRule", err)
		want := rule("r")
		want.Priority = 7
		w.wantSame("UpdateRule", got, want)
		w.wantRules("org", *want)
	}},
	{"UpdateRule returns ErrNotFound or f's error unchanged", func(w *world) {
		refused := errors.New("refused")
		_, err := w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) {
			w.Error("f was called for no rule")
			return r, nil
		})
		w.wantErr("UpdateRule of no rule", err, storage.ErrNotFound)
		w.must("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0))
		_, err = w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) {
			r.Priority = 7
			return r, refused
		})
		if err != refused { //nolint:errorlint // unchanged means identical
			w.Errorf("UpdateRule = %v, want f's error", err)
		}
		_, err = w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) {
			r.ID = "s"
			return r, nil
		})
		if err == nil {
			w.Error("UpdateRule to another ID = nil, want an error")
		}
		w.wantRules("org", *rule("r"))
	}},
	{"DeleteRule removes the rule, or returns ErrNotFound", func(w *world) {
		w.must("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0))
		w.must("PutRule", w.PutRule(w.ctx, "org", rule("rr"), 0))
		w.must("DeleteRule", w.DeleteRule(w.ctx, "org", "r", nil))
		w.wantErr("DeleteRule again", w.DeleteRule(w.ctx, "org", "r", nil), storage.ErrNotFound)
		refused := errors.New("refused")
		keep := func(r engine.Rule) error {
			w.wantSame("the check's rule", r, *rule("rr"))
			return refused
		}
		w.wantErr("DeleteRule that a check refuses", w.DeleteRule(w.ctx, "org", "rr", keep), refused)
		w.wantErr("DeleteRule of no rule", w.DeleteRule(w.ctx, "org", "r", keep), storage.ErrNotFound)
		w.wantRules("org", *rule("rr"))
	}},
	{"AllRules returns every rule in evaluation order: priority descending, then CreatedAt, then ID", func(w *world) {
		var want []engine.Rule
		for _, priority := range []int64{1 << 40, 100, 0, -5} {
			for created := range 2 {
				for n := range 2 {
					r := rule(fmt.Sprintf("%d-%d-%d", -priority, created, n))
					r.Priority, r.CreatedAt = priority, noon.Add(time.Duration(created))
					want = append(want, *r)
				}
			}
		}
		for i := range want {
			w.must("PutRule", w.PutRule(w.ctx, "org", &want[(i*7)%len(want)], 0))
		}
		w.wantRules("org", want...)
	}},
}
