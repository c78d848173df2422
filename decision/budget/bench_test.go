package budget

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
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

// BenchmarkKept reports how long the first count takes after a rule is new and after restarts, and how long a key
// that nobody has asked for takes, with a window of 100,000 rows.
func BenchmarkKept(b *testing.B) {
	const rows = 100_000
	dir, w := b.TempDir(), storagetest.NewWriter()
	options := embedded.Options{Log: slog.New(slog.DiscardHandler)}
	store := must.Get(embedded.Open(dir, options))(b)
	for range rows / 500 {
		var batch []*storage.Record
		for i := range 500 {
			batch = append(batch, w.Record("acme", func(r *storage.Record) {
				r.AgentID, r.Decision, r.ActionType = fmt.Sprint("agent-", i), engine.Allow, "email.send"
			}))
		}
		must.Get(w.Commit(b.Context(), store, batch...))(b)
	}
	at := w.Record("acme").DecidedAt
	c := counter(b, byAgent)
	first := func(k *Counters, agent string, want int64) time.Duration {
		began := time.Now()
		r := must.Get(k.Read(b.Context(), "acme", []*condition.Counter{c}, &engine.Input{Intent: email(agent)}, at))(b)
		if got := r.Counts()[0].N; got != want {
			b.Fatalf("%s has %d, want %d", agent, got, want)
		}
		return time.Since(began)
	}
	open := func() *Counters { return New(Config{History: store, Journal: store}) }
	newRule := first(open(), "agent-1", rows/500+1)
	for b.Loop() {
		must.Do(b, store.Close())
		store = must.Get(embedded.Open(dir, options))(b)
		k := open()
		b.ReportMetric(float64(first(k, "agent-1", rows/500+1).Microseconds()), "µs/restart")
		b.ReportMetric(float64(first(k, "agent-2", rows/500+1).Nanoseconds())/1e3, "µs/first-use")
		b.ReportMetric(float64(first(k, "new", 1).Nanoseconds())/1e3, "µs/new-agent")
	}
	b.ReportMetric(float64(newRule.Microseconds()), "µs/new-rule")
	must.Do(b, store.Close())
}
