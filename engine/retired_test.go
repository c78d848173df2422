package engine

import (
	"context"
	"testing"

	"writ/engine/condition"
)

// ruleSource gives the rules that are set, and nothing else.
type ruleSource struct {
	Source
	rules []Rule
}

func (s *ruleSource) AllRules(context.Context, string) ([]Rule, int64, error) { return s.rules, 0, nil }

func TestSetsCompileOnlyTheRulesThatChanged(t *testing.T) {
	rule := func(id, doc string) Rule {
		return Rule{ID: id, Name: id, Condition: doc, Action: `{"decision":"deny"}`, IsActive: true}
	}
	src := &ruleSource{rules: []Rule{rule("a", `{"action_type":"x"}`), rule("b", `{"action_type":"y"}`)}}
	sets := NewSets(src, Options{}, 1<<20)
	load := func() map[string]*condition.Condition {
		t.Helper()
		rs, err := sets.rules.Get(t.Context(), "org")
		if err != nil {
			t.Fatal(err)
		}
		conditions := make(map[string]*condition.Condition)
		for _, c := range rs.Rules() {
			conditions[c.Rule().ID] = c.cond
		}
		return conditions
	}
	before := load()
	src.rules = []Rule{rule("a", `{"action_type":"x"}`), rule("b", `{"action_type":"z"}`)}
	sets.InvalidateRules("org")
	after := load()
	if before["a"] != after["a"] {
		t.Error("rule a, which did not change, was compiled again")
	}
	if before["b"] == after["b"] {
		t.Error("rule b changed and was not compiled again")
	}
}

func TestRetiredStaysWithinItsBound(t *testing.T) {
	rs := CompileRules([]Rule{{ID: "a", Condition: `{}`, Action: `{"decision":"deny"}`, IsActive: true}}, Options{})
	r := retired{max: 2 * rulesBytes(rs), sets: make(map[string]*RuleSet)}
	for _, org := range []string{"a", "a", "b", "c"} {
		r.put(org, rs)
		if r.bytes > r.max || r.bytes != int64(len(r.sets))*rulesBytes(rs) {
			t.Fatalf("after put(%s): %d bytes in %d sets, want at most %d", org, r.bytes, len(r.sets), r.max)
		}
	}
	if got := r.take("c"); got != rs {
		t.Errorf("take(c) = %p, want %p", got, rs)
	}
	if got := r.take("c"); got != nil {
		t.Errorf("a second take(c) = %p, want nil", got)
	}
	small := retired{max: rulesBytes(rs) - 1, sets: make(map[string]*RuleSet)}
	if small.put("a", rs); small.bytes != 0 {
		t.Errorf("a set greater than the bound is kept")
	}
}
