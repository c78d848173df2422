package registry_test

import (
	"errors"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

var watchTests = []test{
	{"Watch calls f for every change, before the write that made it returns", func(w *world) {
		var h storagetest.Heard
		defer w.docs.Watch(h.Add)()
		changed := func(what string, err error, want ...storage.Change) {
			w.Helper()
			w.Must(what, err)
			w.WantSame("changes of "+what, h.TakeNames(), want)
		}
		policyChange := storage.Change{Kind: storage.PolicyKind, Org: "org", ID: "p"}
		_, err := w.PutPolicy(w.ctx, policy("org", "p", 1), 0)
		changed("PutPolicy", err, policyChange)
		_, err = w.PutPolicy(w.ctx, policy("org", "p", 1), 0)
		changed("PutPolicy again", err)

		rules := storage.Change{Kind: storage.RuleKind, Org: "org", ID: "r"}
		changed("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0), rules)
		_, err = w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) { return r, nil })
		changed("UpdateRule", err, rules)
		changed("DeleteRule", w.DeleteRule(w.ctx, "org", "r", nil), rules)

		agents := storage.Change{Kind: storage.AgentKind, Org: "org", ID: "a", Alias: "x"}
		changed("PutAgent", w.PutAgent(w.ctx, "org", agent("a", "x"), 0), agents)
		_, err = w.SetAgentStatus(w.ctx, "org", "x", engine.AgentDisabled, noon, 0)
		changed("SetAgentStatus", err, agents)

		tokens := storage.Change{Kind: storage.TokenKind, Org: "org", ID: "t"}
		changed("PutToken", w.PutToken(w.ctx, token("org", "t"), 0), tokens)
		changed("RevokeToken", w.RevokeToken(w.ctx, "org", "t", noon), tokens)
		changed("RevokeToken again", w.RevokeToken(w.ctx, "org", "t", noon.Add(time.Hour)))

		subscriptions := storage.Change{Kind: storage.SubscriptionKind, Org: "org"}
		changed("PutSubscription", storagetest.PutSubscription(w.ctx, w, subscription("org", "pro")), subscriptions)
		_, err = w.UpdateSubscription(w.ctx, "org", func(s *storage.Subscription) bool { s.Plan = "business"; return true })
		changed("UpdateSubscription", err, subscriptions)
	}},
	{"a write that fails makes no call", func(w *world) {
		w.fill("org")
		var h storagetest.Heard
		defer w.docs.Watch(h.Add)()
		_, err := w.PutPolicy(w.ctx, policy("org", "p", 0), 0)
		w.WantErr("PutPolicy", err, storage.ErrConflict)
		refused := errors.New("refused")
		_, err = w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) { return r, refused })
		w.WantErr("UpdateRule", err, refused)
		w.WantErr("DeleteRule", w.DeleteRule(w.ctx, "org", "none", nil), storage.ErrNotFound)
		w.WantErr("PutAgent", w.PutAgent(w.ctx, "org", agent("b", "x"), 0), storage.ErrConflict)
		w.WantErr("PutToken", w.PutToken(w.ctx, token("org", "t"), 0), storage.ErrConflict)
		w.WantErr("RevokeToken", w.RevokeToken(w.ctx, "other", "t", noon), storage.ErrNotFound)
		w.WantSame("changes", h.TakeNames(), []storage.Change(nil))
	}},
}
