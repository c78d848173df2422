package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"writ/bench/corpus"
	"writ/engine"
)

// BenchmarkEvaluateCold evaluates one intent under policies of which no two are alike, in a
// random order: what it takes more than with one policy are the reads of memory that no
// cache has. The intent is the same and stays in the caches, as one that was just decoded
// is.
func BenchmarkEvaluateCold(b *testing.B) {
	for _, n := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			policies := make([]*engine.Policy, n)
			for i := range policies {
				policies[i] = mustCompile(b, corpus.PolicyOf(i))
			}
			rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { policies[i], policies[j] = policies[j], policies[i] })
			in := allowedInput()
			if err := in.Intent.Validate(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var got engine.Result
			for i := 0; b.Loop(); i++ {
				if got = engine.Evaluate(policies[i%n], nil, in); got.Decision != engine.Allow {
					b.Fatalf("Evaluate = %v, want allow", got)
				}
			}
		})
	}
}
