package corpustest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/corpus/corpustest"
	"writ.example/writ/engine"
)

func TestIntents(t *testing.T) {
	p, err := engine.CompilePolicy(corpus.ReferencePolicy())
	if err != nil {
		t.Fatal(err)
	}
	intents := corpustest.Intents(1000, 1)
	if diff := cmp.Diff(intents, corpustest.Intents(1000, 1), cmpopts.IgnoreUnexported(engine.Intent{})); diff != "" {
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
