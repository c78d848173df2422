package rego

import (
	"fmt"
	"testing"
	"time"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
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

// BenchmarkCondition asks one condition of each shape. The table of docs/opa.md has its figures.
func BenchmarkCondition(b *testing.B) {
	for _, shape := range []struct{ name, source string }{
		{"comparison", `input.intent.cost.amount_minor > 5000`},
		{"membership", `input.intent.action_type in {"payment.create", "payment.refund"}`},
		{"function", `endswith(input.intent.action_type, ".create")`},
		{"glob", `glob.match("payment.*", ["."], input.intent.action_type)`},
		{"three lines", "endswith(input.intent.action_type, \".create\")\n" +
			"input.intent.cost.amount_minor > 5000\ninput.intent.agent_id != \"eve\""},
		{"items", `every a in writ.items(input.intent.metadata.to) { endswith(a, "@ours.example") }`},
		{"module", "package p\n\nours(a) if endswith(a, \"@ours.example\")\n\n" +
			"outsiders := {a | some a in writ.items(input.intent.metadata.to); not ours(a)}\n\nmatch if count(outsiders) == 0"},
	} {
		b.Run(shape.name, func(b *testing.B) {
			c := must.Get(CompileCondition(shape.source))(b)
			in := sampleInput()
			in.Intent.ActionType, in.Intent.Metadata = "payment.create", map[string]string{"to": "ana@ours.example, bo@ours.example"}
			in.Document = new(any)
			b.ReportAllocs()
			for b.Loop() {
				in.Work = new(condition.Work)
				if ok, err := c.Match(in); err != nil || !ok {
					b.Fatalf("Match = %v, %v, want true", ok, err)
				}
			}
		})
	}
}
