package storagetest

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

// take returns the changes since the last call.
func (h *heard) take() []storage.Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.changes
	h.changes = nil
	return c
}

var watchTests = []test{
	{"Watch calls f for every change, before the write that made it returns", func(w *world) {
		var h heard
		defer w.Watch(h.add)()
		changed := func(what string, err error, want ...storage.Change) {
			w.Helper()
			w.must(what, err)
			w.wantSame("changes of "+what, h.take(), want)
		}
		policyChange := storage.Change{Kind: storage.PolicyChanged, OrganizationID: "org", ID: "p"}
		_, err := w.PutPolicy(w.ctx, policy("org", "p", 1), 0)
		changed("PutPolicy", err, policyChange)
		_, err = w.PutPolicy(w.ctx, policy("org", "p", 1), 0)
		changed("PutPolicy again", err)

		rules := storage.Change{Kind: storage.RulesChanged, OrganizationID: "org"}
		changed("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0), rules)
		_, err = w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) { return r, nil })
		changed("UpdateRule", err, rules)
		changed("DeleteRule", w.DeleteRule(w.ctx, "org", "r"), rules)

		agents := storage.Change{Kind: storage.AgentChanged, OrganizationID: "org", ID: "a", ExternalID: "x"}
		changed("PutAgent", w.PutAgent(w.ctx, "org", agent("a", "x"), 0), agents)
		_, err = w.SetAgentStatus(w.ctx, "org", "x", engine.AgentDisabled, noon, 0)
		changed("SetAgentStatus", err, agents)

		tokens := storage.Change{Kind: storage.TokenChanged, OrganizationID: "org", ID: "t"}
		changed("PutToken", w.PutToken(w.ctx, token("org", "t"), 0), tokens)
		changed("RevokeToken", w.RevokeToken(w.ctx, "org", "t", noon), tokens)
		changed("RevokeToken again", w.RevokeToken(w.ctx, "org", "t", noon.Add(time.Hour)))

		subscriptions := storage.Change{Kind: storage.SubscriptionChanged, OrganizationID: "org"}
		changed("PutSubscription", w.PutSubscription(w.ctx, subscription("org", "pro")), subscriptions)
		_, err = w.UpdateSubscription(w.ctx, "org", func(s *storage.Subscription) bool { s.Plan = "business"; return true })
		changed("UpdateSubscription", err, subscriptions)
	}},
	{"a write that fails makes no call", func(w *world) {
		w.fill("org")
		var h heard
		defer w.Watch(h.add)()
		_, err := w.PutPolicy(w.ctx, policy("org", "p", 0), 0)
		w.wantErr("PutPolicy", err, storage.ErrConflict)
		refused := errors.New("refused")
		_, err = w.UpdateRule(w.ctx, "org", "r", func(r engine.Rule) (engine.Rule, error) { return r, refused })
		w.wantErr("UpdateRule", err, refused)
		w.wantErr("DeleteRule", w.DeleteRule(w.ctx, "org", "none"), storage.ErrNotFound)
		w.wantErr("PutAgent", w.PutAgent(w.ctx, "org", agent("b", "x"), 0), storage.ErrConflict)
		w.wantErr("PutToken", w.PutToken(w.ctx, token("org", "t"), 0), storage.ErrConflict)
		w.wantErr("RevokeToken", w.RevokeToken(w.ctx, "other", "t", noon), storage.ErrNotFound)
		w.wantSame("changes", h.take(), []storage.Change(nil))
	}},
	{"every watcher is called until its own stop", func(w *world) {
		var first, second heard
		stopFirst := w.Watch(first.add)
		stopSecond := w.Watch(second.add)
		w.must("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0))
		stopFirst()
		stopFirst()
		w.must("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0))
		stopSecond()
		w.must("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0))
		if a, b := len(first.take()), len(second.take()); a != 1 || b != 2 {
			w.Errorf("the watchers heard %d and %d changes, want 1 and 2", a, b)
		}
	}},
	{"a change must be visible to reads when the watcher hears of it", func(w *world) {
		signal, seen := make(chan storage.Change), make(chan int64)
		defer w.Watch(func(c storage.Change) {
			signal <- c // the reader reads while the write waits
			<-seen
		})()
		for v := range int64(5) {
			done := make(chan error)
			go func() {
				_, err := w.PutPolicy(w.ctx, policy("org", "p", v+1), 0)
				done <- err
			}()
			<-signal
			p, err := w.Policy(w.ctx, "org", "p")
			if err != nil || p.Version != v+1 {
				w.Errorf("Policy while the watcher is told = %+v, %v; want version %d", p, err, v+1)
			}
			seen <- v
			w.must("PutPolicy", <-done)
		}
	}},
}
