package engine

import (
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// TestDigest_OfNoRules checks the worked example of [Digest].
func TestDigest_OfNoRules(t *testing.T) {
	var none *RuleSet
	const want = "sha256:643d5437104296e21d906ecb15b2c96ad278f20cfc4af53b12bb6069bd853726"
	if got, err := none.Digest(); got != want || err != nil {
		t.Errorf("Digest = %s, %v, want %s", got, err, want)
	}
}

// TestDigest_KeptIsTheSame checks that a set keeps the digest of the lists that it has.
func TestDigest_KeptIsTheSame(t *testing.T) {
	rules := []Rule{{ID: "r", Name: "listed", Condition: `{"metadata.to":{"$in":{"list":"payees"}}}`, Action: `{"decision":"deny"}`, IsActive: true}}
	seen := make(map[string]string)
	for name, lists := range map[string]condition.Lists{
		"none": nil, "empty": {"payees": condition.NewList(nil)}, "one": {"payees": condition.NewList([]string{"bob"})},
	} {
		kept := CompileRules(rules, Options{KeepDigest: true}).WithLists(lists)
		want := must.Get(CompileRules(rules, Options{Lists: lists}).Digest())(t)
		if got := must.Get(kept.Digest())(t); got != want || kept.digest != want {
			t.Errorf("%s: Digest = %s, kept %q, want %s", name, got, kept.digest, want)
		}
		if other, ok := seen[want]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[want] = name
		renamed := CompileRules(rules, Options{KeepDigest: true})
		rules[0].Name += "x"
		if next := renamed.Update(rules, Options{KeepDigest: true}); next.digest == renamed.digest || next.digest == "" {
			t.Errorf("after a change the digest is %q, before it %q", next.digest, renamed.digest)
		}
		rules[0].Name = "listed"
	}
}

// TestDigest_OfThePolicy checks which members of a policy are in the digest.
func TestDigest_OfThePolicy(t *testing.T) {
	p := ActionPolicy{PolicyID: "p", Version: 1 << 60, OrganizationID: "acme", AgentID: "*", AllowedActionTypes: []string{"a", "b"}, Status: StatusActive}
	digest := must.Get(Digest(&p, nil))(t)
	if !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+64 {
		t.Errorf("Digest = %s, want sha256: and 64 digits", digest)
	}
	same := p
	same.UpdatedAt, same.DeniedActionTypes, same.Revision = time.Now(), []string{}, 7
	if got := must.Get(Digest(&same, nil))(t); got != digest {
		t.Errorf("the digest depends on updated_at, an empty list or the revision")
	}
	limit := int64(0)
	for name, change := range map[string]func(p *ActionPolicy){
		"policy_id": func(p *ActionPolicy) { p.PolicyID = "q" }, "version": func(p *ActionPolicy) { p.Version++ },
		"agent_id": func(p *ActionPolicy) { p.AgentID = "**" }, "one type": func(p *ActionPolicy) { p.AllowedActionTypes = []string{`a","b`} },
		"the order of types": func(p *ActionPolicy) { p.AllowedActionTypes = []string{"b", "a"} },
		"a list of another":  func(p *ActionPolicy) { p.DeniedActionTypes, p.AllowedActionTypes = p.AllowedActionTypes, nil },
		"max_cost_minor":     func(p *ActionPolicy) { p.MaxCostMinor = &limit }, "status": func(p *ActionPolicy) { p.Status = StatusRevoked },
	} {
		other := p
		change(&other)
		if got := must.Get(Digest(&other, nil))(t); got == digest {
			t.Errorf("%s is not in the digest", name)
		}
	}
	if len(p.AllowedActionTypes) != 2 {
		t.Error("Digest changed the policy")
	}
}
