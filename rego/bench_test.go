package rego

import (
	"fmt"
	"testing"
	"time"

	"writ/bench/corpus"
	"writ/engine"
)

// The reference policy on the allow path, in Rego and, in the same run, in the
// engine: the ratio is what counts.
func BenchmarkPrepared(b *testing.B) {
	for _, n := range []int{0, 1000} {
		rules := corpus.Rules(n, 1)
		in := &engine.Input{Intent: corpus.AllowedIntent(), Agent: engine.AgentActive}
		query, err := Prepare(corpus.ReferencePolicy(), rules, nil)
		if err != nil {
			b.Fatal(err)
		}
		query.timeout = time.Minute
		policy, err := engine.CompilePolicy(corpus.ReferencePolicy())
		if err != nil {
			b.Fatal(err)
		}
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
	c, err := CompileCondition(`input.intent.cost.amount_minor > 5000`)
	if err != nil {
		b.Fatal(err)
	}
	c.(*sandboxed).timeout = time.Minute
	in := sampleInput()
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := c.Match(in); err != nil || !ok {
			b.Fatalf("Match = %v, %v, want true", ok, err)
		}
	}
}
