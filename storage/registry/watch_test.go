package registry_test

import (
	"errors"
	"sync"
	"time"

	"writ/engine"
	"writ/storage"
)

// heard are the changes that a watcher was told of.
type heard struct {
	mu      sync.Mutex
	changes []storage.Change
}

func (h *heard) add(c storage.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
}

// take returns the changes since the last call, less their revisions and digests.
func (h *heard) take() []storage.Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.changes
	h.changes = nil
	for i := range c {
		c[i].Revision, c[i].Digest = 0, [32]byte{}
	}
	return c
}

var watchTests = []test{
	{"Watch calls f for every change, before the write that made it returns", func(w *world) {
		var h heard
		defer w.docs.Watch(h.add)()
		changed := func(what string, err error, want ...storage.Change) {
			w.Helper()
			w.must(what, err)
			w.wantSame("changes of "+what, h.take(), want)
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
		changed("PutSubscription", w.PutSubscription(w.ctx, subscription("org", "pro")), subscriptions)
		_, err = w.UpdateSubscription(w.ctx, "org", func(s *storage.Subscription) bool { s.Plan = "business"; return true })
		changed("UpdateSubscription", err, subscriptions)
	}},
	{"a write that fails makes no call", func(w *world) {
		w.fill("org")
		var h heard
		defer w.docs.Watch(h.add)()
		_, err := w.PutPolicy(w.ctx, policy("org", "p", 0), 0)
		w.wantErr("PutPolicy", err, storage.ErrConflict)
		refused := errors.New("refused")
		_, err = w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) { return r, refused })
		w.wantErr("UpdateRule", err, refused)
		w.wantErr("DeleteRule", w.DeleteRule(w.ctx, "org", "none", nil), storage.ErrNotFound)
		w.wantErr("PutAgent", w.PutAgent(w.ctx, "org", agent("b", "x"), 0), storage.ErrConflict)
		w.wantErr("PutToken", w.PutToken(w.ctx, token("org", "t"), 0), storage.ErrConflict)
		w.wantErr("RevokeToken", w.RevokeToken(w.ctx, "other", "t", noon), storage.ErrNotFound)
		w.wantSame("changes", h.take(), []storage.Change(nil))
	}},
}
