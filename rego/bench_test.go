package rego

import (
	"fmt"
	"testing"
	"time"

	"writ/bench/corpus"
	"writ/engine"
	"writ/internal/must"
)

// BenchmarkPrepared evaluates the reference policy for an allowed intent, in Rego and in the
// engine. Compare the ratio of the two within one run.
func BenchmarkPrepared(b *testing.B) {
	for _, n := range []int{0, 1000} {
		rules := corpus.Rules(n, 1)
		in := &engine.Input{Intent: corpus.AllowedIntent(), Agent: engine.AgentActive}
		query := must.Get(Prepare(corpus.ReferencePolicy(), rules, nil))(b)
		query.timeout = time.Minute
		policy := must.Get(engine.CompilePolicy(corpus.ReferencePolicy()))(b)
		set := engine.CompileRules(rules, engine.Options{})
		want := engine.Evaluate(policy, set, in).Decision
		b.Run(fmt.Sprintf("rego/rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got, _, err := query.Evaluate(in); err != nil || got != want {
					b.Fatalf("Evaluate = %v, %v, want %v", got, err, want)
				}
			}
		})
		b.Run(fmt.Sprintf("engine/rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := engine.Evaluate(policy, set, in); got.Decision != want {
					b.Fatalf("Evaluate = %v, want %v", got.Decision, want)
				}
			}
		})
	}
}

func BenchmarkPrepare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Prepare(corpus.ReferencePolicy(), nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileCondition(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CompileCondition(`input.intent.cost.amount_minor > 5000`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCondition(b *testing.B) {
	c := must.Get(CompileCondition(`input.intent.cost.amount_minor > 5000`))(b)
	in := sampleInput()
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := c.Match(in); err != nil || !ok {
			b.Fatalf("Match = %v, %v, want true", ok, err)
		}
	}
}
