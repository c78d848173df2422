package registry_test

import (
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

var countTests = []test{
	{"Usage returns how many policies org has, whatever their versions", func(w *world) {
		w.wantCounts("org", 0, 0)
		w.putPolicy(policy("org", "p", 1))
		w.putPolicy(policy("org", "p", 2))
		w.putPolicy(policy("org", "q", 7))
		w.putPolicy(policy("other", "p", 1))
		_, err := w.PutPolicy(w.ctx, policy("org", "p", 1), 0)
		w.Must("PutPolicy of what is stored", err)
		_, err = w.PutPolicy(w.ctx, policy("org", "r", 1), 2)
		w.wantLimit("PutPolicy", err, 2)
		w.wantCounts("org", 2, 0)
		w.wantCounts("other", 1, 0)
	}},
	{"Usage returns how many agents org has", func(w *world) {
		w.put("org", agent("a", "x"), agent("b", ""))
		w.put("other", agent("a", ""))
		w.WantErr("PutAgent", w.PutAgent(w.ctx, "org", agent("x", ""), 0), storage.ErrConflict)
		w.wantLimit("PutAgent", w.PutAgent(w.ctx, "org", agent("c", ""), 2), 2)
		_, err := w.SetAgentStatus(w.ctx, "org", "a", "disabled", noon, 0)
		w.Must("SetAgentStatus", err)
		w.wantCounts("org", 0, 2)
		w.wantCounts("other", 0, 1)
		got, err := w.Usage(w.ctx, "org", noon)
		w.Must("Usage", err)
		w.WantSame("the agents of Usage", got.Agents, registry.AgentCount{Total: 2, Disabled: 1})
	}},
	{"Usage returns how many rules org has, and PutRule keeps to maxRules", func(w *world) {
		w.wantRuleCount("org", 0)
		for _, id := range []string{"a", "b"} {
			w.Must("PutRule", w.PutRule(w.ctx, "org", rule(id), 2))
		}
		w.Must("PutRule of another organization", w.PutRule(w.ctx, "other", rule("a"), 2))
		w.wantLimit("PutRule(c)", w.PutRule(w.ctx, "org", rule("c"), 2), 2)
		w.Must("PutRule that replaces at the limit", w.PutRule(w.ctx, "org", rule("b"), 2))
		_, err := w.UpdateRule(w.ctx, "org", "b", func(r engine.Rule) (engine.Rule, error) { r.Priority++; return r, nil })
		w.Must("UpdateRule at the limit", err)
		w.wantRuleCount("org", 2)
		w.Must("DeleteRule", w.DeleteRule(w.ctx, "org", "a", nil))
		w.WantErr("DeleteRule again", w.DeleteRule(w.ctx, "org", "a", nil), storage.ErrNotFound)
		w.wantRuleCount("org", 1)
		w.Must("PutRule in the place that is free", w.PutRule(w.ctx, "org", rule("c"), 2))
		w.put("org", rule("d"))
		w.wantRuleCount("org", 3)
		w.wantRuleCount("other", 1)
	}},
	{"Usage returns how many tokens of org are usable, and PutToken keeps to maxTokens", func(w *world) {
		put := func(id, parent string, expires time.Time, at time.Time, limit int) error {
			t := childOf(parent, token("org", id))
			t.CreatedAt, t.ExpiresAt = at, expires
			return w.PutToken(w.ctx, t, limit)
		}
		w.wantTokenCount("org", noon, 0)
		hour := noon.Add(time.Hour)
		w.Must("PutToken(a)", put("a", "", time.Time{}, noon, 3))
		w.Must("PutToken(b)", put("b", "a", hour, noon, 3))
		w.Must("PutToken(c)", put("c", "b", hour.Add(1), noon, 3))
		w.Must("PutToken of another organization", w.PutToken(w.ctx, token("other", "d"), 3))
		w.wantLimit("PutToken(e)", put("e", "", time.Time{}, noon, 3), 3)
		w.wantLimit("PutToken(e) just before one expires", put("e", "", time.Time{}, hour.Add(-1), 3), 3)
		w.WantErr("PutToken(a) at the limit", put("a", "", time.Time{}, noon, 3), storage.ErrConflict)
		_, err := w.Token(w.ctx, "e")
		w.WantErr("Token(e)", err, storage.ErrNotFound)
		w.wantTokenCount("org", noon, 3)
		w.wantTokenCount("org", hour, 2)
		w.Must("PutToken(e) when one expires", put("e", "", time.Time{}, hour, 3))
		w.Must("PutToken(f) without a limit", put("f", "", time.Time{}, hour, 0))
		w.wantTokenCount("org", hour.Add(1), 3)
		for range 2 { // also revokes c, which is usable, and b, which is not
			w.Must("RevokeToken(a)", w.RevokeToken(w.ctx, "org", "a", hour))
			w.wantTokenCount("org", hour, 2)
		}
		w.Must("PutToken(g) in the place that is free", put("g", "", time.Time{}, hour, 3))
		w.wantLimit("PutToken(h)", put("h", "", time.Time{}, hour, 3), 3)
		w.wantTokenCount("other", noon, 1)
	}},
}

func (w *world) wantRuleCount(org string, want int) {
	w.Helper()
	got, err := w.Usage(w.ctx, org, noon)
	w.Must("Usage", err)
	if got.Rules != want {
		w.Errorf("%q has %d rules, want %d", org, got.Rules, want)
	}
}

func (w *world) wantTokenCount(org string, at time.Time, want int) {
	w.Helper()
	got, err := w.Usage(w.ctx, org, at)
	w.Must("Usage", err)
	if got.Tokens != want {
		w.Errorf("%q has %d usable tokens at %v, want %d", org, got.Tokens, at, want)
	}
}

func (w *world) wantCounts(org string, policies, agents int) {
	w.Helper()
	got, err := w.Usage(w.ctx, org, noon)
	w.Must("Usage", err)
	if got.Policies != policies || got.Agents.Total != int64(agents) {
		w.Errorf("%q has %+v, want %d policies and %d agents", org, got, policies, agents)
	}
}
