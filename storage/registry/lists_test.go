package registry_test

import (
	"context"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// lists stores 3 items of org for each paged list. For each list it returns a function that counts
// the items on a page.
func (w *world) lists(org string) map[string]func(storage.Page) (int, string, error) {
	for i := range 3 {
		id := fmt.Sprint(org, i)
		w.putPolicy(policy(org, id, 1))
		w.put(org, agent(id, ""), token(org, id))
	}
	return map[string]func(storage.Page) (int, string, error){
		"ListPolicies": counted(w, org, w.ListPolicies), "ListAgents": counted(w, org, w.ListAgents), "ListTokens": counted(w, org, w.ListTokens),
	}
}

// counted returns a function that counts the items on a page of a list of org.
func counted[T any](
	w *world, org string, list func(context.Context, string, storage.Page) ([]T, string, error),
) func(storage.Page) (int, string, error) {
	return func(p storage.Page) (int, string, error) {
		items, next, err := list(w.ctx, org, p)
		return len(items), next, err
	}
}

var listTests = []test{
	{"a cursor that the same list did not return must give ErrBadCursor", func(w *world) {
		lists := w.lists("org")
		cursors := map[string]string{"none": "", "made up": "x", "not base64": "***", "long": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}
		for name, list := range lists {
			_, next, err := list(storage.Page{Limit: 1})
			w.Must(name, err)
			cursors[name] = next
		}
		for name, list := range lists {
			for from, c := range cursors {
				n, _, err := list(storage.Page{Limit: 10, After: c})
				switch {
				case from == "none" && (n != 3 || err != nil):
					w.Errorf("%s = %d items, %v; want 3, nil", name, n, err)
				case from == name && (n != 2 || err != nil):
					w.Errorf("%s after its own cursor = %d items, %v; want 2, nil", name, n, err)
				case from != name && from != "none":
					w.WantErr(name+" after a cursor of "+from, err, storage.ErrBadCursor)
				}
			}
			_, _, err := list(storage.Page{Limit: 10, After: cursors[name] + "="})
			w.WantErr(name+" after a cursor with padding", err, storage.ErrBadCursor)
		}
	}},
	{"a cursor is safe in a URL", func(w *world) {
		for name, list := range w.lists("org \x00/?&#+%") {
			_, next, err := list(storage.Page{Limit: 1})
			w.Must(name, err)
			for _, c := range []byte(next) {
				if c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
					w.Errorf("%s = cursor %q, want only letters, digits, - and _", name, next)
				}
			}
		}
	}},
	{"Limit must be positive", func(w *world) {
		for name, list := range w.lists("org") {
			for _, limit := range []int{0, -1} {
				if n, _, err := list(storage.Page{Limit: limit}); err == nil {
					w.Errorf("%s with limit %d = %d items, nil; want an error", name, limit, n)
				}
			}
		}
	}},
	{"a write under a context that has ended must fail with nothing stored", func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		_, policyErr := w.PutPolicy(ctx, policy("org", "p", 1), 0)
		_, updateErr := w.UpdateSubscription(ctx, "org", func(s *storage.Subscription) bool { s.Plan = "pro"; return true })
		for what, err := range map[string]error{
			"PutPolicy": policyErr, "UpdateSubscription": updateErr,
			"PutRule":         w.PutRule(ctx, "org", rule("r"), 0),
			"PutAgent":        w.PutAgent(ctx, "org", agent("a", ""), 0),
			"PutToken":        w.PutToken(ctx, token("org", "t"), 0),
			"PutSubscription": storagetest.PutSubscription(ctx, w, subscription("org", "pro")),
		} {
			w.WantErr(what, err, context.Canceled)
		}
		w.wantEmpty("org")
	}},
}

// wantEmpty fails the test if org has any document.
func (w *world) wantEmpty(org string) {
	w.Helper()
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	_, err := w.Policy(w.ctx, org, "p")
	add(err)
	_, err = w.Agent(w.ctx, org, "a")
	add(err)
	_, err = w.Agent(w.ctx, org, "x")
	add(err)
	_, err = w.SetAgentStatus(w.ctx, org, "a", engine.AgentDisabled, noon, 0)
	add(err)
	_, err = w.SetAgentStatus(w.ctx, org, "x", engine.AgentDisabled, noon, 0)
	add(err)
	_, err = w.Subscription(w.ctx, org)
	add(err)
	_, err = w.UpdateRule(w.ctx, org, "r", func(r engine.Rule) (engine.Rule, error) { return r, nil })
	add(err)
	add(w.DeleteRule(w.ctx, org, "r", nil))
	add(w.RevokeToken(w.ctx, org, "t", noon))
	for i, err := range errs {
		w.WantErr(fmt.Sprintf("access %d to a document of another", i), err, storage.ErrNotFound)
	}
	w.wantRules(org)
	w.wantStop(org, nil)
	n := len(w.policies(org, 10)) + len(w.agents(org, 10)) + len(w.tokens(org, 10))
	if n > 0 {
		w.Errorf("the lists of %q hold %d items, want 0", org, n)
	}
}
