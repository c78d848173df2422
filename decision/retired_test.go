package decision

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// ruleSource is a source that has only the rules in rules.
type ruleSource struct {
	source
	rules []engine.Rule
}

func (s *ruleSource) RulesAndLibraries(context.Context, string) ([]engine.Rule, []engine.Library, int64, error) {
	return s.rules, nil, 0, nil
}

func TestSetsCompileOnlyTheRulesThatChanged(t *testing.T) {
	var compiled []string
	rule := func(id, source string) engine.Rule {
		return engine.Rule{ID: id, Name: id, Condition: `{"rego":"` + source + `"}`, Action: `{"decision":"deny"}`, IsActive: true}
	}
	src := &ruleSource{rules: []engine.Rule{rule("a", "input.a"), rule("b", "input.b")}}
	sets := newSets(setsConfig{source: src, maxBytes: 1 << 30, options: engine.Options{
		CompileRego: func(source string) (engine.RegoCondition, error) {
			compiled = append(compiled, source)
			return rego.CompileCondition("input.intent.cost")
		},
	}})
	load := func(want ...string) {
		t.Helper()
		compiled = nil
		if _, err := sets.Rules(t.Context(), nil, "org"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, compiled); diff != "" {
			t.Errorf("compiled (-want +got):\n%s", diff)
		}
	}
	load("input.a", "input.b")
	src.rules = []engine.Rule{rule("a", "input.a"), rule("b", "input.c")}
	sets.InvalidateRules("org")
	load("input.c")
}

func TestRetiredStaysWithinItsBound(t *testing.T) {
	rs := engine.CompileRules([]engine.Rule{{ID: "a", Condition: `{}`, Action: `{"decision":"deny"}`, IsActive: true}}, engine.Options{})
	size := int64(rs.Size())
	r := retired{max: 2 * size, sets: make(map[string]*engine.RuleSet)}
	for _, org := range []string{"a", "a", "b", "c"} {
		r.put(org, rs)
		if r.bytes > r.max || r.bytes != int64(len(r.sets))*size {
			t.Fatalf("after put(%s): %d bytes in %d sets, want at most %d", org, r.bytes, len(r.sets), r.max)
		}
	}
	if got := r.take("c"); got != rs {
		t.Errorf("take(c) = %p, want %p", got, rs)
	}
	if got := r.take("c"); got != nil {
		t.Errorf("a second take(c) = %p, want nil", got)
	}
	small := retired{max: size - 1, sets: make(map[string]*engine.RuleSet)}
	if small.put("a", rs); small.bytes != 0 {
		t.Errorf("a set greater than the bound is kept")
	}
}
