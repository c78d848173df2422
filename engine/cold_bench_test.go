package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
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

// threadTime returns the processor time that the calling thread has used.
func threadTime(b *testing.B) time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	must.Do(b, syscall.Getrusage(thisThread, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
