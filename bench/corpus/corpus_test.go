package corpus_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ/bench/corpus"
	"writ/engine"
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

func TestIntents(t *testing.T) {
	p, err := engine.CompilePolicy(corpus.ReferencePolicy())
	if err != nil {
		t.Fatal(err)
	}
	intents := corpus.Intents(1000, 1)
	if diff := cmp.Diff(intents, corpus.Intents(1000, 1), cmpopts.IgnoreUnexported(engine.Intent{})); diff != "" {
		t.Errorf("the same seed gives other intents:\n%s", diff)
	}
	allowed, ids := 0, map[string]bool{}
	for _, in := range intents {
		if err := in.Validate(); err != nil {
			t.Fatalf("%v: %v", in, err)
		}
		if engine.Evaluate(p, nil, &engine.Input{Intent: in, Agent: engine.AgentActive}).Decision == engine.Allow {
			allowed++
		}
		ids[in.IntentID] = true
	}
	if allowed < 300 || allowed > 700 {
		t.Errorf("%d of 1000 intents are allowed, want about half", allowed)
	}
	if len(ids) != 1000 {
		t.Errorf("%d distinct intent ids, want 1000", len(ids))
	}
}
