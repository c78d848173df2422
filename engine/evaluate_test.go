package engine_test

import (
	"strings"
	"testing"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/corpus/corpustest"
	"writ.example/writ/engine"
)

// TestEvaluate_AllowAllocatesNothing checks that an evaluation that allows allocates nothing:
// without rules, with rules, and if a rule allows.
func TestEvaluate_AllowAllocatesNothing(t *testing.T) {
	p := mustCompile(t, corpus.ReferencePolicy())
	allowing := append(corpus.Rules(1000, 1), engine.Rule{
		ID: "cleared", Name: "Cleared", Condition: `{"metadata.env":"prod","resource":"https://api.stripe.com/**"}`,
		Action: `{"decision":"allow"}`, Priority: 1000, IsActive: true,
	})
	withoutCost := allowedInput()
	withoutCost.Intent.Cost = nil
	tests := []struct {
		name  string
		rules []engine.Rule
		in    *engine.Input
	}{
		{"no rules", nil, allowedInput()},
		{"one rule", corpus.Rules(1, 1), allowedInput()},
		{"1000 rules", corpus.Rules(1000, 1), allowedInput()},
		{"1000 rules and no cost", corpus.Rules(1000, 1), withoutCost},
		{"a rule allows", allowing, allowedInput()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rs := engine.CompileRules(tt.rules, engine.Options{})
			var got engine.Result
			allocs := testing.AllocsPerRun(200, func() { got = engine.Evaluate(p, rs, tt.in) })
			if got.Decision != engine.Allow {
				t.Fatalf("Evaluate = %v, want allow", got)
			}
			if allocs != 0 && !raceEnabled {
				t.Errorf("Evaluate allocated %v times, want 0", allocs)
			}
		})
	}
}

func TestEvaluate_NothingToEvaluateDenies(t *testing.T) {
	p := mustCompile(t, corpus.ReferencePolicy())
	tests := []struct {
		name string
		p    *engine.Policy
		in   *engine.Input
	}{
		{"no policy", nil, allowedInput()},
		{"no input", p, nil},
		{"no intent", p, &engine.Input{Agent: engine.AgentActive}},
		{"nothing", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := engine.Evaluate(tt.p, nil, tt.in)
			if got.Decision != engine.Deny || got.Findings[0].Code != engine.CodePolicyMissing {
				t.Errorf("Evaluate = %+v, want a deny for %s", got, engine.CodePolicyMissing)
			}
		})
	}
}

// TestDecision_Evaluation_UnreadableResourceDenies checks that an intent whose resource cannot be
// read is denied, even if nobody validated the intent.
func TestDecision_Evaluation_UnreadableResourceDenies(t *testing.T) {
	doc := corpus.ReferencePolicy()
	doc.AllowedResourcePatterns, doc.BlockedResourcePatterns = nil, nil
	p := mustCompile(t, doc)
	for _, resource := range []string{"", "a\x00b", "https://h/%ff", "https://h/%252e", " x", strings.Repeat("a", 1<<16)} {
		in := allowedInput()
		in.Intent.Resource = resource
		got := engine.Evaluate(p, nil, in)
		if got.Decision != engine.Deny || got.Findings[0].Code != engine.CodeResourceUnreadable {
			t.Errorf("Evaluate(%.20q) = %+v, want a deny for %s", resource, got, engine.CodeResourceUnreadable)
		}
	}
}

func TestDecision_Evaluation_ReasonsStartWithTheirCodeAndEchoNothing(t *testing.T) {
	p := mustCompile(t, corpus.ReferencePolicy())
	rs := engine.CompileRules(corpus.Rules(50, 1), engine.Options{})
	known := map[engine.Code]bool{}
	for _, c := range engine.Codes() {
		known[c] = true
	}
	for _, intent := range corpustest.Intents(500, 7) {
		intent.AgentID, intent.Metadata = "secret-agent", map[string]string{"k": "secret-value"}
		intent.Resource += "/secret-path"
		r := engine.Evaluate(p, rs, &engine.Input{Intent: intent})
		if len(r.Findings) == 0 || len(r.Reasons()) != len(r.Findings) {
			t.Fatalf("Evaluate(%v) = %+v, want findings", intent, r)
		}
		for _, f := range r.Findings {
			if !known[f.Code] || !strings.HasPrefix(f.Reason, string(f.Code)+": ") {
				t.Errorf("reason %q does not start with a known code", f.Reason)
			}
			if strings.Contains(f.Reason, "secret-") {
				t.Errorf("reason %q echoes the intent", f.Reason)
			}
		}
	}
}

func TestEvaluate_IsSafeForConcurrentUse(t *testing.T) {
	p := mustCompile(t, corpus.ReferencePolicy())
	rs := engine.CompileRules(corpus.Rules(100, 1), engine.Options{})
	intents := corpustest.Intents(64, 3)
	want := make([]string, len(intents))
	for i, in := range intents {
		want[i] = resultText(engine.Evaluate(p, rs, &engine.Input{Intent: in, Agent: engine.AgentActive}))
	}
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i, in := range intents {
				if got := resultText(engine.Evaluate(p, rs, &engine.Input{Intent: in, Agent: engine.AgentActive})); got != want[i] {
					t.Errorf("Evaluate(%v) = %s, want %s", in, got, want[i])
				}
			}
		})
	}
}
