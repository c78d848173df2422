package registry_test

import (
	"fmt"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

var tenancyTests = []test{
	{"another organization's document behaves exactly as one that does not exist", func(w *world) {
		w.fill("org")
		for _, other := range append([]string{"or", "orgg", "org\x00", "Org"}, storagetest.Hostile...) {
			w.wantEmpty(other)
		}
	}},
	{"no organization id reaches into another's range", func(w *world) {
		for i, org := range storagetest.Hostile {
			for _, later := range storagetest.Hostile[i:] {
				if i%5 == 0 {
					w.wantEmpty(later)
				}
			}
			w.fill(org)
		}
		for _, org := range storagetest.Hostile {
			w.wantFilled(org)
		}
	}},
	{"the same ids in two organizations are two documents", func(w *world) {
		w.fill("a")
		w.putPolicy(policy("b", "p", 9))
		got, err := w.Policy(w.ctx, "a", "p")
		w.Must("Policy", err)
		w.WantSame("Policy", got, policy("a", "p", 1))
	}},
}

// fill stores one document of each kind for org.
func (w *world) fill(org string) {
	w.Helper()
	w.putPolicy(policy(org, "p", 1))
	w.put(org, rule("r"))
	w.Must("PutAgent", w.PutAgent(w.ctx, org, agent("a", "x"), 1))
	w.put("org", token(org, tokenOf(org)), subscription(org, "pro"))
	_, err := w.Stop(w.ctx, org, noon)
	w.Must("Stop", err)
}

// tokenOf returns the id of org's token. The token of the organization "org" has the id t.
func tokenOf(org string) string {
	if org == "org" {
		return "t"
	}
	return fmt.Sprintf("t-%x", org)
}

// wantFilled fails the test unless org has exactly the documents of fill.
func (w *world) wantFilled(org string) {
	w.Helper()
	what := fmt.Sprintf("of %q", org)
	policies, agents, tokens := w.policies(org, 10), w.agents(org, 10), w.tokens(org, 10)
	if len(policies) != 1 || len(agents) != 1 || len(tokens) != 1 {
		w.Fatalf("lists %s = %d policies, %d agents, %d tokens; want 1 each", what, len(policies), len(agents), len(tokens))
	}
	w.WantSame("ListPolicies "+what, policies[0], policy(org, "p", 1))
	w.WantSame("ListAgents "+what, agents[0], agent("a", "x"))
	w.WantSame("ListTokens "+what, tokens[0], token(org, tokenOf(org)))
	w.wantTokenCount(org, noon, 1)
	w.wantRules(org, *rule("r"))
	w.wantAgent(org, "x", agent("a", "x"))
	got, err := w.Subscription(w.ctx, org)
	w.Must("Subscription", err)
	w.WantSame("Subscription "+what, got, subscription(org, "pro"))
	w.wantStop(org, &storage.Stop{At: noon})
}
