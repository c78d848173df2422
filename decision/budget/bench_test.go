package budget

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// rules returns a set with one rule, which does not match.
func rules(b *testing.B, condition string) *engine.RuleSet {
	b.Helper()
	rule := engine.Rule{
		ID: "r", Name: "r", IsActive: true, Priority: engine.DefaultPriority, Condition: condition, Action: `{"decision":"deny","reason":"no"}`,
	}
	rule.Revision = 1
	r := must.Get(engine.CompileRule(rule, engine.Options{}))(b)
	return engine.SetOf([]*engine.CompiledRule{r}, nil)
}

// BenchmarkEvaluate_Budget compares an evaluation under a rule that counts with one under a
// rule that does not. It includes reading, reserving and committing, and not the store's
// time. Counts are far from the limit, in one process and in replicas.
func BenchmarkEvaluate_Budget(b *testing.B) {
	policy := must.Get(engine.CompilePolicy(corpus.ReferencePolicy()))(b)
	plain := `{"action_type":"never.asked","metadata.n":"1"}`
	counted := `{"count":{"by":["agent_id"],"window":"7d"},"gt":1000000000}`
	for _, v := range []struct {
		name, condition string
		windows         storage.Windows
	}{
		{"budget=none", plain, nil},
		{"budget=alone", counted, nil},
		{"budget=shared", counted, storagetest.NewMemory().Open().Windows()},
	} {
		b.Run(v.name, func(b *testing.B) {
			set := rules(b, v.condition)
			k := New(Config{History: &history{}, Windows: v.windows})
			in := engine.Input{Intent: corpus.AllowedIntent(), Agent: engine.AgentActive}
			at := time.Now()
			b.ReportAllocs()
			for b.Loop() {
				r := must.Get(k.Read(b.Context(), "acme", set.Counters(), &in, at))(b)
				in.Counts = r.Counts()
				if result := engine.Evaluate(policy, set, &in); result.Decision != engine.Allow || !reserve(b, r) {
					b.Fatalf("decided %v", result)
				}
				r.Commit()
			}
		})
	}
}

// BenchmarkCounters_Million reports the memory of a million live counters. Each is for an agent
// with a name of 31 bytes, and has counts in three parts of its window.
func BenchmarkCounters_Million(b *testing.B) {
	const million = 1_000_000
	c := counter(b, byAgent)
	for b.Loop() {
		k := New(Config{History: &history{}})
		before := heap()
		for i := range million {
			in := &engine.Intent{IntentID: "i", AgentID: fmt.Sprintf("team-%04d/agent-%08d-of-some", i%1000, i), ActionType: "email.send"}
			r, err := k.Read(b.Context(), "acme", []*condition.Counter{c}, &engine.Input{Intent: in}, noon)
			if err != nil || !reserve(b, r) {
				b.Fatal(err)
			}
			r.Commit()
			r.cells[0].window.add(r.cells[0].bucket+5, 1)
			r.cells[0].window.add(r.cells[0].bucket+10, 1)
		}
		took := heap() - before
		if k.kept != million {
			b.Fatalf("%d are kept", k.kept)
		}
		b.ReportMetric(float64(took)/million, "B/counter")
		b.ReportMetric(float64(took>>20), "MiB")
		runtime.KeepAlive(k)
	}
}

func BenchmarkCounters(b *testing.B) {
	k, c := New(Config{History: &history{}}), counter(b, byAgent)
	counters := []*condition.Counter{c}
	in := email("team-a/agent-1")
	at := noon
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(time.Millisecond)
		r, err := k.Read(b.Context(), "acme", counters, &engine.Input{Intent: in}, at)
		if err != nil || !reserve(b, r) {
			b.Fatal(err)
		}
		r.Commit()
	}
}
