package engine_test

import (
	"testing"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
)

// BenchmarkEvaluate_Session measures an evaluation in a session that allows the intent.
func BenchmarkEvaluate_Session(b *testing.B) {
	policy, in := mustCompile(b, corpus.ReferencePolicy()), allowedInput()
	most := int64(1_000_000_000)
	session, err := engine.CompileSession(&engine.Session{
		ID: "s", PolicyID: in.Intent.PolicyID, AgentID: in.Intent.AgentID, Status: engine.SessionActive,
		AllowedActionTypes: []string{in.Intent.ActionType, "sql.*"}, AllowedResourcePatterns: []string{"prod/**", in.Intent.Resource}, MaxCostMinor: &most,
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]engine.InSession{"session=none": {}, "session=whole": {CompiledSession: session}} {
		b.Run(name, func(b *testing.B) {
			in.Session = s
			b.ReportAllocs()
			for b.Loop() {
				if got := engine.Evaluate(policy, nil, in); got.Decision != engine.Allow {
					b.Fatalf("Evaluate = %v %v, want allow", got.Decision, got.Reasons())
				}
			}
		})
	}
}
