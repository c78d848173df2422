package core

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/go-json-experiment/json"

	"writ/bench/corpus"
	"writ/engine"
	"writ/internal/must"
)

// withRules returns testSet with n rules, compiled as in a deployment with an external core.
func withRules(t testing.TB, n int) engine.Set {
	t.Helper()
	set := testSet(t)
	set.Rules = engine.CompileRules(corpus.Rules(n, 1), engine.Options{KeepJSON: true})
	return set
}

// TestQuestion_DoesNotCopyTheRules checks that the memory of a question does not depend on the
// number of rules.
func TestQuestion_DoesNotCopyTheRules(t *testing.T) {
	few, many := withRules(t, 0), withRules(t, 1000)
	rules, err := many.Rules.JSON()
	if err != nil || len(rules) < 200_000 {
		t.Fatalf("the rules have %d bytes, %v: too few for this test", len(rules), err)
	}
	const times = 100
	allocated := func(set engine.Set) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			if _, err := newQuestion(set, testInput()); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / times
	}
	allocated(few) // fills the encoder's pools first
	if without, with := allocated(few), allocated(many); with > without+16<<10 {
		t.Errorf("a question with 1,000 rules of %d bytes allocates %d bytes, without %d", len(rules), with, without)
	}
}

// TestQuestion_HoldsTheRulesInForce checks that after a change a question has the new rules. The
// cached JSON of the old rules must be dropped.
func TestQuestion_HoldsTheRulesInForce(t *testing.T) {
	set := testSet(t)
	for n := 2; n <= 3; n++ {
		set.Rules = set.Rules.Update(corpus.Rules(n, 1), engine.Options{KeepJSON: true})
		set.Revisions.Rules = int64(n)
		var got struct {
			Input struct {
				Rules         []engine.Rule `json:"rules"`
				RulesRevision int64         `json:"rules_revision"`
			} `json:"input"`
		}
		q := must.Get(newQuestion(set, testInput()))(t)
		for range 2 { // net/http reads the body a second time for a retry
			body := must.Get(q.open())(t)
			text, err := io.ReadAll(body)
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			if err != nil || int64(len(text)) != q.len() {
				t.Fatalf("read %d bytes of %d: %v", len(text), q.len(), err)
			}
			if len(got.Input.Rules) != n || got.Input.RulesRevision != int64(n) || q.under != (versions{1, int64(n)}) {
				t.Errorf("%d rules of revision %d, asked under %v, want %d of as many writes", len(got.Input.Rules), got.Input.RulesRevision, q.under, n)
			}
		}
	}
}

func BenchmarkQuestion(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			set, in := withRules(b, n), testInput()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newQuestion(set, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
