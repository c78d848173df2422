package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// crowd returns policies in a random order. All policies differ.
var crowd = sync.OnceValues(func() ([]*engine.Policy, error) {
	policies := make([]*engine.Policy, 10_000)
	for i := range policies {
		var err error
		if policies[i], err = engine.CompilePolicy(corpus.Policy(i)); err != nil {
			return nil, err
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(policies), func(i, j int) { policies[i], policies[j] = policies[j], policies[i] })
	return policies, nil
})

// BenchmarkEvaluateCold evaluates one intent under many different policies, in a random order.
// Compared with a benchmark of one policy, it also measures reads of memory that no cache holds.
// The intent stays in the caches, like an intent that was just decoded. cpu-ns/op is processor
// time, because other load on the machine changes processor time less than wall time.
func BenchmarkEvaluateCold(b *testing.B) {
	policies := must.Get(crowd())(b)
	for _, n := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			in := allowedInput()
			must.Do(b, in.Intent.Validate())
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var got engine.Result
			start := threadTime(b)
			for i := 0; b.Loop(); i++ {
				if got = engine.Evaluate(policies[i%n], nil, in); got.Decision != engine.Allow {
					b.Fatalf("Evaluate = %v, want allow", got)
				}
			}
			b.ReportMetric(float64(threadTime(b)-start)/float64(b.N), "cpu-ns/op")
		})
	}
}

// TestCompileStored_Allocates bounds what a policy that no cache has costs: see BenchmarkLoadMissed of package decision.
func TestCompileStored_Allocates(t *testing.T) {
	const most = 110
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	policies := make([]*engine.ActionPolicy, 101)
	for i := range policies {
		policies[i] = corpus.Policy(20_000 + i) // no other test has compiled it
	}
	if got := testing.AllocsPerRun(len(policies)-1, func() {
		must.Get(engine.CompileStored(policies[0]))(t)
		policies = policies[1:]
	}); got > most {
		t.Errorf("a policy that is compiled allocates %v times, want at most %d", got, most)
	}
}

// TestCompileRules_Memory bounds the memory of the rules of organizations that have the same conditions.
func TestCompileRules_Memory(t *testing.T) {
	const organizations, rules, most = 200, 20, 1000
	if raceEnabled {
		t.Skip("the race detector takes memory, too")
	}
	sets, before := make([]*engine.RuleSet, organizations), heap()
	for i := range sets {
		own := corpus.Rules(rules, 1)
		for k := range own {
			own[k].Condition = strings.Clone(own[k].Condition)
		}
		sets[i] = engine.CompileRules(own, engine.Options{})
	}
	if got := (heap() - before) / (organizations * rules); got > most {
		t.Errorf("a rule takes %d bytes, want at most %d", got, most)
	}
	runtime.KeepAlive(sets)
}

// threadTime returns the processor time that the calling thread has used.
func threadTime(b *testing.B) time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	must.Do(b, syscall.Getrusage(thisThread, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
