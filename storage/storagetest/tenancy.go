package storagetest

import (
	"fmt"

	"writ/storage"
)

// hostile are organization ids that would reach into one another's documents if
// keys were made carelessly.
var hostile = []string{
	"a", "ab", "a\x00", "a\x00\x01", "a/", "a/b", "a:b", "a|b", "", "\x00", "\x00\x01a", "\x00\x00", "ÿ", "ÿÿ",
	"\U0010ffff", "a\x01", "A", " a", "a ", "á", "a\u0301", "p", "t", "%", "*", "..", "$ne", "org.id",
}

var tenancyTests = []test{
	{"another organization's document behaves exactly as one that does not exist", func(w *world) {
		r := w.fill("org")
		for _, other := range append([]string{"or", "orgg", "org\x00", "Org"}, hostile...) {
			w.wantEmpty(other, r)
		}
		w.check()
	}},
	{"no organization id reaches into another's range", func(w *world) {
		records := make(map[string]*storage.Record)
		for i, org := range hostile {
			for _, later := range hostile[i:] {
				if i%5 == 0 {
					w.wantEmpty(later, w.record(later))
				}
			}
			records[org] = w.fill(org)
		}
		for _, org := range hostile {
			w.wantFilled(org, records[org])
		}
		w.check()
	}},
	{"the same ids in two organizations are two documents", func(w *world) {
		a := w.fill("a")
		b := w.record("b", func(r *storage.Record) { r.IntentID = a.IntentID })
		w.putPolicy(policy("b", "p", 9))
		w.commit(b)
		got, err := w.Policy(w.ctx, "a", "p")
		w.must("Policy", err)
		w.wantSame("Policy", got, policy("a", "p", 1))
		w.check()
	}},
}

// fill stores one document of each kind for org.
func (w *world) fill(org string) *storage.Record {
	w.Helper()
	w.putPolicy(policy(org, "p", 1))
	w.must("PutRule", w.PutRule(w.ctx, org, rule("r"), 0))
	w.must("PutAgent", w.PutAgent(w.ctx, org, agent("a", "x"), 1))
	w.must("PutToken", w.PutToken(w.ctx, token(org, tokenOf(org)), 0))
	w.must("PutSubscription", w.PutSubscription(w.ctx, subscription(org, "pro")))
	r := w.record(org)
	w.commit(r)
	return r
}

// tokenOf returns the id of org's token: t for most tests' org.
func tokenOf(org string) string {
	if org == "org" {
		return "t"
	}
	return fmt.Sprintf("t-%x", org)
}

// wantFilled reports that org has anything but what fill stored.
func (w *world) wantFilled(org string, r *storage.Record) {
	w.Helper()
	what := fmt.Sprintf("of %q", org)
	policies, agents, tokens := w.policies(org, 10), w.agents(org, 10), w.tokens(org, 10)
	if len(policies) != 1 || len(agents) != 1 || len(tokens) != 1 {
		w.Fatalf("lists %s = %d policies, %d agents, %d tokens; want 1 each", what, len(policies), len(agents), len(tokens))
	}
	w.wantSame("ListPolicies "+what, policies[0], policy(org, "p", 1))
	w.wantSame("ListAgents "+what, agents[0], agent("a", "x"))
	w.wantSame("ListTokens "+what, tokens[0], token(org, tokenOf(org)))
	w.wantTokenCount(org, noon, 1)
	w.wantRules(org, *rule("r"))
	w.wantAgent(org, "x", agent("a", "x"))
	w.wantSame("ListRecords "+what, w.history(org, storage.Filter{}, 10), []*storage.Record{r})
	got, err := w.Subscription(w.ctx, org)
	w.must("Subscription", err)
	w.wantSame("Subscription "+what, got, subscription(org, "pro"))
}
