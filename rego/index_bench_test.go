package rego

import (
	"fmt"
	"testing"
	"time"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// BenchmarkRulesInRego evaluates an intent under rules in Rego, and alternates with the same
// evaluation without rules. It reports the times and their ratio.
func BenchmarkRulesInRego(b *testing.B) {
	for _, bench := range []struct {
		name  string
		n     int
		rules func(i int) string
	}{
		{"prefix", 100, func(i int) string { return fmt.Sprintf("startswith(input.intent.action_type, \"svc%d.\")", i) }},
		{"glob", 100, func(i int) string {
			return fmt.Sprintf("glob.match(\"svc%d.*\", [\".\"], input.intent.action_type)", i)
		}},
		{"equality", 100, func(i int) string { return fmt.Sprintf("input.intent.action_type == \"svc%d.x\"", i) }},
		{"prefix-1000", 1000, func(i int) string { return fmt.Sprintf("startswith(input.intent.action_type, \"svc%d.\")", i) }},
		{"asked", 100, func(i int) string { return fmt.Sprintf("endswith(input.intent.action_type, \".svc%d\")", i) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			rules := make([]engine.Rule, bench.n)
			for i := range rules {
				rules[i] = engine.Rule{ID: fmt.Sprint(i), Name: "r", IsActive: true, Action: `{"decision":"deny"}`,
					Condition: marshal(map[string]any{"rego": bench.rules(i) + "\ninput.intent.cost.amount_minor >= 0"})}
			}
			policy := must.Get(engine.CompilePolicy(corpus.ReferencePolicy()))(b)
			set := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition})
			in := &engine.Input{Intent: corpus.AllowedIntent(), Agent: engine.AgentActive}
			took := map[*engine.RuleSet]time.Duration{}
			const each = 50 // evaluations between two looks at the clock
			evaluate := func(rs *engine.RuleSet) {
				start := time.Now()
				for range each {
					if got := engine.Evaluate(policy, rs, in); got.Decision != engine.Allow || got.ConditionErrors.Total() > 0 {
						b.Fatalf("Evaluate = %v", got)
					}
				}
				took[rs] += time.Since(start)
			}
			n := 0
			for b.Loop() {
				evaluate(nil)
				evaluate(set)
				n += each
			}
			b.ReportMetric(float64(took[nil].Nanoseconds())/float64(n), "ns/none")
			b.ReportMetric(float64(took[set].Nanoseconds())/float64(n), "ns/rules")
			b.ReportMetric(float64(took[set])/float64(took[nil]), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
