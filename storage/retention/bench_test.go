package retention

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/metricstest"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/receipt"
)

// oldRows is the number of rows that a sweep finds to remove. Removing them takes longer than a
// benchmark of two seconds.
const oldRows = 100_000

// BenchmarkDecisionsWhileSweeping measures durable decisions, one after another. It runs once with
// a sweeper that removes history at the usual pace, and once without. p50 and p99 are percentiles
// of the time that a caller waits. removed is the number of rows that the sweeper removed
// meanwhile.
func BenchmarkDecisionsWhileSweeping(b *testing.B) {
	for _, sweeping := range []bool{false, true} {
		b.Run(fmt.Sprintf("sweeping=%v", sweeping), func(b *testing.B) { benchDecisions(b, sweeping) })
	}
}

func benchDecisions(b *testing.B, sweeping bool) {
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	store, err := embedded.Open(b.TempDir(), embedded.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, store.Close()) })
	scrubber, err := scrub.New()
	must(b, err)
	tagger, err := scrubber.Tagger(make([]byte, 32))
	must(b, err)
	l, err := ledger.Open(ctx, ledger.Config{
		Store: store, Signer: receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32))), Scrub: tagger,
		Now: func() time.Time { return time.Now().Add(-24 * time.Hour) },
	})
	must(b, err)
	b.Cleanup(func() { must(b, l.Close(context.Background())) })
	fill(b, l)

	reg := prometheus.NewRegistry()
	s, err := New(Config{
		Store: store, Announce: l.Retain, Metrics: reg,
		Keep: func(_ context.Context, org string) (time.Duration, error) {
			if org == "old" {
				return time.Hour, nil
			}
			return 0, nil
		},
	})
	must(b, err)
	var sweeper sync.WaitGroup
	if sweeping {
		sweeper.Go(func() { s.Run(ctx) })
	}
	var waits []time.Duration
	for b.Loop() {
		start := time.Now()
		must(b, decide(ctx, l, "busy"))
		waits = append(waits, time.Since(start))
	}
	stop()
	sweeper.Wait()
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(metricstest.Read(b, reg)["writ_retention_removed_records_total"].Value, "removed")
}

// fill decides oldRows intents of the organization whose history the sweeper removes.
func fill(b *testing.B, l *ledger.Ledger) {
	b.Helper()
	const callers = 64
	failed := make(chan error, callers)
	for range callers {
		go func() {
			var err error
			for i := 0; i < oldRows/callers && err == nil; i++ {
				err = decide(b.Context(), l, "old")
			}
			failed <- err
		}()
	}
	for range callers {
		must(b, <-failed)
	}
}

func decide(ctx context.Context, l *ledger.Ledger, org string) error {
	_, err := ledgertest.Decide(ctx, l, org, 0, 1)
	return err
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
