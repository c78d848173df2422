package corpus_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
)

func TestReferencePolicy(t *testing.T) {
	p := corpus.ReferencePolicy()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	got := [4]int{len(p.AllowedActionTypes), len(p.DeniedActionTypes), len(p.AllowedResourcePatterns), len(p.BlockedResourcePatterns)}
	if want := [4]int{20, 10, 10, 5}; got != want {
		t.Errorf("lists have %v entries, want %v", got, want)
	}
}

func TestRules(t *testing.T) {
	rules := corpus.Rules(200, 1)
	for i := range rules {
		if err := rules[i].Validate(); err != nil {
			t.Errorf("rule %d: %v", i, err)
		}
	}
	if broken := engine.CompileRules(rules, engine.Options{}).Broken(); len(broken) > 0 {
		t.Errorf("rules that do not compile: %v", broken)
	}
	if diff := cmp.Diff(rules, corpus.Rules(200, 1)); diff != "" {
		t.Errorf("the same seed gives other rules:\n%s", diff)
	}
}
