//go:build unix

package decision

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/internal/must"
)

// processorTime returns the processor time of all threads of the process so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkVerifier makes one decision at a time, with a store in memory. It verifies different
// shares of the decisions. cpu-µs/op is the processor time of deciding and verifying.
// verified/op and dropped/op count the samples by their result. off is measured twice, and the
// difference of the two is noise.
func BenchmarkVerifier(b *testing.B) {
	for _, rules := range []int{0, 100} {
		for _, share := range []struct {
			name  string
			every uint64
		}{{"off", 0}, {"1-100", 100}, {"1-10", 10}, {"1-1", 1}, {"off-again", 0}} {
			b.Run(fmt.Sprintf("rules=%d/%s", rules, share.name), func(b *testing.B) {
				v := newVerified(b, 1<<40, max(1, share.every), prepareRego)
				for _, r := range corpus.Rules(rules, 1) {
					must.Do(b, v.docs.PutRule(b.Context(), corpus.Organization, &r, 1000))
				}
				if share.every == 0 {
					v.Service.verifier = nil
				}
				done := make(chan struct{})
				ctx, stop := context.WithCancel(b.Context())
				go func() {
					defer close(done)
					v.verifier.run(ctx)
				}()
				for range 200 { // what is compiled and prepared once is not the cost of a request
					v.Decide(b.Context(), caller(), []Request{request()})
				}
				for len(v.verifier.queue) > 0 {
					time.Sleep(time.Millisecond)
				}
				before, ran := v.count(b), processorTime(b)
				for b.Loop() {
					if got := decisions(v.Decide(b.Context(), caller(), []Request{request()})); got != "policy.allowed" {
						b.Fatalf("Decide = %s, want policy.allowed", got)
					}
				}
				for len(v.verifier.queue) > 0 {
					time.Sleep(time.Millisecond)
				}
				ran = processorTime(b) - ran
				after := v.count(b)
				stop()
				<-done
				if after[verifiedDiffers] > 0 {
					b.Fatalf("verified %v, want no difference", after)
				}
				b.ReportMetric(float64(ran.Microseconds())/float64(b.N), "cpu-µs/op")
				b.ReportMetric(float64(after[verifiedSame]-before[verifiedSame])/float64(b.N), "verified/op")
				b.ReportMetric(float64(after[verifiedError]-before[verifiedError])/float64(b.N), "errors/op") // more than 2 s without a processor
				b.ReportMetric(float64(after[verifiedDropped]-before[verifiedDropped])/float64(b.N), "dropped/op")
			})
		}
	}
}
