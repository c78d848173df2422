package registry_test

import "fmt"

// hostile are organization ids that would reach into one another's documents if
// keys were made carelessly.
var hostile = []string{
	"a", "ab", "a\x00", "a\x00\x01", "a/", "a/b", "a:b", "a|b", "", "\x00", "\x00\x01a", "\x00\x00", "ÿ", "ÿÿ",
	"\U0010ffff", "a\x01", "A", " a", "a ", "á", "a\u0301", "p", "t", "%", "*", "..", "$ne", "org.id",
}

var tenancyTests = []test{
	{"another organization's document behaves exactly as one that does not exist", func(w *world) {
		w.fill("org")
		for _, other := range append([]string{"or", "orgg", "org\x00", "Org"}, hostile...) {
			w.wantEmpty(other)
		}
	}},
	{"no organization id reaches into another's range", func(w *world) {
		for i, org := range hostile {
			for _, later := range hostile[i:] {
				if i%5 == 0 {
					w.wantEmpty(later)
				}
			}
			w.fill(org)
		}
		for _, org := range hostile {
			w.wantFilled(org)
		}
	}},
	{"the same ids in two organizations are two documents", func(w *world) {
		w.fill("a")
		w.putPolicy(policy("b", "p", 9))
		got, err := w.Policy(w.ctx, "a", "p")
		w.must("Policy", err)
		w.wantSame("Policy", got, policy("a", "p", 1))
	}},
}

// fill stores one document of each kind for org.
func (w *world) fill(org string) {
	w.Helper()
	w.putPolicy(policy(org, "p", 1))
	w.must("PutRule", w.PutRule(w.ctx, org, rule("r"), 0))
	w.must("PutAgent", w.PutAgent(w.ctx, org, agent("a", "x"), 1))
	w.must("PutToken", w.PutToken(w.ctx, token(org, tokenOf(org)), 0))
	w.must("PutSubscription", w.PutSubscription(w.ctx, subscription(org, "pro")))
}

// tokenOf returns the id of org's token: t for most tests' org.
func tokenOf(org string) string {
	if org == "org" {
		return "t"
	}
	return fmt.Sprintf("t-%x", org)
}

// wantFilled reports that org has anything but what fill stored.
func (w *world) wantFilled(org string) {
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
	got, err := w.Subscription(w.ctx, org)
	w.must("Subscription", err)
	w.wantSame("Subscription "+what, got, subscription(org, "pro"))
}
