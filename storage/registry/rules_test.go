package registry_test

import (
	"errors"
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
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
	w.Must("AllRules", err)
	w.WantSame("AllRules", got, want)
}

var ruleTests = []test{
	{"PutRule stores a new rule or replaces the one with its ID", func(w *world) {
		w.wantRules("org")
		r := rule("r")
		w.put("org", r)
		w.wantRules("org", *r)
		changed := rule("r")
		changed.IsActive = false
		w.put("org", changed)
		w.wantRules("org", *changed)
	}},
	{"UpdateRule replaces the rule by what f makes of it", func(w *world) {
		w.put("org", rule("r"))
		got, err := w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) {
			w.WantSame("f's rule", r, *rule("r"))
			r.Priority = 7
			return r, nil
		})
		w.Must("UpdateRule", err)
		want := rule("r")
		want.Priority = 7
		w.WantSame("UpdateRule", got, want)
		w.wantRules("org", *want)
	}},
	{"UpdateRule returns ErrNotFound or f's error unchanged", func(w *world) {
		refused := errors.New("refused")
		_, err := w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) {
			w.Error("f was called for no rule")
			return r, nil
		})
		w.WantErr("UpdateRule of no rule", err, storage.ErrNotFound)
		w.put("org", rule("r"))
		_, err = w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) {
			r.Priority = 7
			return r, refused
		})
		if err != refused { //nolint:errorlint // UpdateRule returns the error of f unwrapped
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
		w.put("org", rule("r"), rule("rr"))
		w.Must("DeleteRule", w.DeleteRule(w.ctx, "org", "r", nil))
		w.WantErr("DeleteRule again", w.DeleteRule(w.ctx, "org", "r", nil), storage.ErrNotFound)
		refused := errors.New("refused")
		keep := func(r engine.Rule) error {
			w.WantSame("the check's rule", r, *rule("rr"))
			return refused
		}
		w.WantErr("DeleteRule that a check refuses", w.DeleteRule(w.ctx, "org", "rr", keep), refused)
		w.WantErr("DeleteRule of no rule", w.DeleteRule(w.ctx, "org", "r", keep), storage.ErrNotFound)
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
			w.put("org", &want[(i*7)%len(want)])
		}
		w.wantRules("org", want...)
	}},
}
