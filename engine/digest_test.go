package engine_test

import (
	"strings"
	"testing"
	"time"

	"writ/bench/corpus"
	"writ/engine"
)

// A digest tells apart whatever can change a decision or its reasons, and
// nothing else.
func TestPolicy_Digest(t *testing.T) {
	base := engine.DigestPolicy(corpus.ReferencePolicy())
	if got := mustCompile(t, corpus.ReferencePolicy()).Digest(); got != base || !strings.HasPrefix(base, "sha256:") || len(base) != 71 {
		t.Errorf("Digest = %s, DigestPolicy = %s, want the same sha256", got, base)
	}
	seen := map[string]string{base: "as it is"}
	limit := int64(7)
	for name, change := range map[string]func(*engine.ActionPolicy){
		"policy_id":    func(p *engine.ActionPolicy) { p.PolicyID = strings.Replace(p.PolicyID, "0", "1", 1) },
		"version":      func(p *engine.ActionPolicy) { p.Version++ },
		"organization": func(p *engine.ActionPolicy) { p.OrganizationID += "2" },
		"agent_id":     func(p *engine.ActionPolicy) { p.AgentID += "2" },
		"allowed":      func(p *engine.ActionPolicy) { p.AllowedActionTypes = p.AllowedActionTypes[1:] },
		"denied":       func(p *engine.ActionPolicy) { p.DeniedActionTypes = p.DeniedActionTypes[1:] },
		"resources":    func(p *engine.ActionPolicy) { p.AllowedResourcePatterns = nil },
		"blocked":      func(p *engine.ActionPolicy) { p.BlockedResourcePatterns = nil },
		"cap":          func(p *engine.ActionPolicy) { p.MaxCostMinor = &limit },
		"no cap":       func(p *engine.ActionPolicy) { p.MaxCostMinor = nil },
		"currency":     func(p *engine.ActionPolicy) { p.Currency = "CHF" },
		"status":       func(p *engine.ActionPolicy) { p.Status = engine.StatusRevoked },
	} {
		p := corpus.ReferencePolicy()
		change(p)
		got := engine.DigestPolicy(p)
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[got] = name
	}
	same := corpus.ReferencePolicy()
	same.UpdatedAt = same.UpdatedAt.Add(time.Hour)
	if got := engine.DigestPolicy(same); got != base {
		t.Errorf("updated_at changes the digest")
	}
	empty, none := corpus.ReferencePolicy(), corpus.ReferencePolicy()
	empty.BlockedResourcePatterns, none.BlockedResourcePatterns = []string{}, nil
	if engine.DigestPolicy(empty) != engine.DigestPolicy(none) {
		t.Errorf("an empty list and none have different digests")
	}
}

func TestRuleSet_Digest(t *testing.T) {
	rules := corpus.Rules(3, 1)
	digest := func(change func([]engine.Rule) []engine.Rule) string {
		list := append([]engine.Rule(nil), rules...)
		return engine.CompileRules(change(list), engine.Options{}).Digest()
	}
	asIs := func(l []engine.Rule) []engine.Rule { return l }
	base := digest(asIs)
	var none *engine.RuleSet
	if got := none.Digest(); got != engine.CompileRules(nil, engine.Options{}).Digest() || got == base {
		t.Errorf("Digest of no rules = %s, want that of an empty set", got)
	}
	for name, change := range map[string]func([]engine.Rule) []engine.Rule{
		"name":      func(l []engine.Rule) []engine.Rule { l[0].Name += "x"; return l },
		"condition": func(l []engine.Rule) []engine.Rule { l[0].Condition = `{}`; return l },
		"action":    func(l []engine.Rule) []engine.Rule { l[0].Action = `{"decision":"deny","reason":"x"}`; return l },
		"priority":  func(l []engine.Rule) []engine.Rule { l[0].Priority += 1000; return l },
		"inactive":  func(l []engine.Rule) []engine.Rule { l[0].IsActive = false; return l },
		"fewer":     func(l []engine.Rule) []engine.Rule { return l[1:] },
	} {
		if digest(change) == base {
			t.Errorf("another %s does not change the digest", name)
		}
	}
	for name, change := range map[string]func([]engine.Rule) []engine.Rule{
		"order":       func(l []engine.Rule) []engine.Rule { l[0], l[2] = l[2], l[0]; return l },
		"id":          func(l []engine.Rule) []engine.Rule { l[2].ID += "x"; return l },
		"description": func(l []engine.Rule) []engine.Rule { l[0].Description += "x"; return l },
		"updatedAt":   func(l []engine.Rule) []engine.Rule { l[0].UpdatedAt = l[0].UpdatedAt.Add(1); return l },
	} {
		if digest(change) != base {
			t.Errorf("%s changes the digest", name)
		}
	}
}
