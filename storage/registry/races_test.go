package registry_test

import (
	"errors"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

var raceTests = []test{
	{"of racing PutPolicy of one version with different content exactly one succeeds", func(w *world) {
		for v := int64(1); v <= 5; v++ {
			storagetest.OneWinner(w, "PutPolicy", storage.ErrConflict, func(i int) error {
				p := policy("org", "p", v)
				p.AgentID = fmt.Sprint("agent-", i)
				_, err := w.PutPolicy(w.ctx, p, 0)
				return err
			})
		}
		if n := len(w.policies("org", 10)); n != 5 {
			w.Errorf("ListPolicies = %d versions, want 5", n)
		}
	}},
	{"of racing PutPolicy of one version with the same content exactly one creates", func(w *world) {
		again := errors.New("not created")
		storagetest.OneWinner(w, "PutPolicy", again, func(int) error {
			created, err := w.PutPolicy(w.ctx, policy("org", "p", 1), 1)
			if err == nil && !created {
				return again
			}
			return err
		})
	}},
	{"racing first versions keep to maxPolicies", func(w *world) {
		storagetest.Race(func(i int) {
			_, err := w.PutPolicy(w.ctx, policy("org", fmt.Sprint("p", i), 1), 5)
			if err != nil {
				w.wantLimit("PutPolicy", err, 5)
			}
		})
		if n := len(w.policies("org", 10)); n != 5 {
			w.Errorf("ListPolicies = %d policies, want 5", n)
		}
	}},
	{"of racing PutAgent with one external id exactly one succeeds", func(w *world) {
		storagetest.OneWinner(w, "PutAgent", storage.ErrConflict, func(i int) error {
			return w.PutAgent(w.ctx, "org", agent(fmt.Sprint("a", i), "x"), 0)
		})
	}},
	{"racing agents keep to maxAgents", func(w *world) {
		storagetest.Race(func(i int) {
			if err := w.PutAgent(w.ctx, "org", agent(fmt.Sprint("a", i), ""), 5); err != nil {
				w.wantLimit("PutAgent", err, 5)
			}
		})
		if n := len(w.agents("org", 10)); n != 5 {
			w.Errorf("ListAgents = %d agents, want 5", n)
		}
	}},
	{"racing rules keep to maxRules", func(w *world) {
		storagetest.Race(func(i int) {
			if err := w.PutRule(w.ctx, "org", rule(fmt.Sprint("r", i)), 5); err != nil {
				w.wantLimit("PutRule", err, 5)
			}
		})
		rules, _, err := w.AllRules(w.ctx, "org")
		w.Must("AllRules", err)
		if len(rules) != 5 {
			w.Errorf("AllRules = %d rules, want 5", len(rules))
		}
		storagetest.Race(func(i int) {
			err := w.DeleteRule(w.ctx, "org", fmt.Sprint("r", i), nil)
			if err != nil {
				w.WantErr("DeleteRule", err, storage.ErrNotFound)
			}
		})
		w.wantRuleCount("org", 0)
	}},
	{"of racing PutToken of one id exactly one succeeds", func(w *world) {
		storagetest.OneWinner(w, "PutToken", storage.ErrConflict, func(i int) error {
			return w.PutToken(w.ctx, token(fmt.Sprint("org", i), "t"), 0)
		})
	}},
	{"racing tokens keep to maxTokens", func(w *world) {
		storagetest.Race(func(i int) {
			if err := w.PutToken(w.ctx, token("org", fmt.Sprint("t", i)), 5); err != nil {
				w.wantLimit("PutToken", err, 5)
			}
		})
		w.wantTokenCount("org", noon, 5)
		if n := len(w.tokens("org", 10)); n != 5 {
			w.Errorf("ListTokens = %d tokens, want 5", n)
		}
	}},
	{"UpdateRule is atomic: no other update may fall between", func(w *world) {
		r := rule("r")
		r.Priority = 0
		w.put("org", r)
		storagetest.Race(func(int) {
			_, err := w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) {
				r.Priority++
				return r, nil
			})
			if err != nil {
				w.Errorf("UpdateRule = %v", err)
			}
		})
		r.Priority = storagetest.Racers
		w.wantRules("org", *r)
	}},
}
