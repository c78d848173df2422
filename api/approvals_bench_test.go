package api

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"writ.example/writ/engine"
)

// pendingApprovals is the number of undecided approvals in the store while the benchmarks run.
const pendingApprovals = 100_000

// BenchmarkApprovals measures four operations over HTTP: reading a page of pending approvals,
// evaluating, approving, and using an approval. Each operation runs with no other pending approvals
// and with 100,000.
func BenchmarkApprovals(b *testing.B) {
	for _, pending := range []int{0, pendingApprovals} {
		d := openDesk(b, func(c *setup) {
			c.Service.Plans = map[string]engine.Plan{"free": {Name: "free", Evaluations: 1 << 50, Policies: 10, Rules: 10}}
			c.Limits.Handle = time.Hour // the test clock does not advance
		})
		for range pending / maxBatch {
			intents := make([]any, maxBatch)
			for i := range intents {
				intents[i] = inner(intent(cost(82_000), obj{"metadata": obj{"ticket": "4711"}}))
			}
			d.do("POST", batchPath, d.asker, obj{"mode": "each", "intents": intents}).wantStatus(http.StatusOK)
		}
		timed := func(f func()) time.Duration {
			start := time.Now()
			f()
			return time.Since(start)
		}
		for name, do := range map[string]func() time.Duration{
			"list": func() time.Duration {
				return timed(func() { d.do("GET", "/v1/approvals?status=pending", d.reader, nil).wantStatus(http.StatusOK) })
			},
			"evaluate": func() time.Duration {
				return timed(func() { wantDecision(b, d.do("POST", "/v1/policy/evaluate", d.asker, intent()), "allow") })
			},
			"hold": func() time.Duration { return timed(func() { d.hold() }) },
			"release": func() time.Duration {
				body, id := d.hold()
				return timed(func() {
					d.approve(id)
					wantDecision(b, d.redeem(body, id), "allow")
				})
			},
		} {
			b.Run(fmt.Sprintf("%s/pending=%d", name, pending), func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					took = append(took, do())
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}
