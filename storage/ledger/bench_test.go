package ledger

import (
	"context"
	"crypto/ed25519"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
	"writ.example/writ/internal/metricstest"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/receipt"
)

// callers is the number of goroutines that commit concurrently in a parallel benchmark.
const callers = 64

func setCallers(b *testing.B) { b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0))) }

// noop is a store that calls the seal of every batch and stores nothing.
type noop struct{ Store }

func (noop) Append(_ context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	_, _, err := seal(receipt.Chain{}, batch)
	return storage.Batch{Records: make([]*storage.Record, len(batch.Records))}, err
}

func (noop) Metered(context.Context, string, storage.Month) (int64, error) { return 0, nil }

// BenchmarkCommit measures a reservation and its commit with many concurrent callers.
func BenchmarkCommit(b *testing.B) {
	b.Run("callers=64/store=noop", func(b *testing.B) { benchmarkCommit(b, noop{newFake()}) })
	b.Run("callers=64/store=embedded", func(b *testing.B) { benchmarkCommit(b, openEmbedded(b)) })
}

func openEmbedded(b *testing.B) Store {
	b.Helper()
	store, err := embedded.Open(b.TempDir(), embedded.Options{})
	must(b, err)
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return store
}

func benchmarkCommit(b *testing.B, store Store) {
	reg := prometheus.NewRegistry()
	l := open(b, store, func(c *Config) { c.Now, c.Metrics = time.Now, reg })
	setCallers(b)
	b.ReportAllocs()
	b.ResetTimer()
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		e := entry(nil, engine.Allow)
		for pb.Next() {
			in := *benchIntent
			in.IntentID = benchID(n.Add(1))
			e.Intent = &in
			if _, err := decide(b.Context(), l, "acme", e); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	batches := metricstest.Read(b, reg)["writ_ledger_batch_size"]
	b.ReportMetric(batches.Sum/float64(batches.Count), "commits/batch")
}

var benchIntent = func() *engine.Intent {
	in := intent(0)
	in.Resource = "https://api.example.com/v1/deployments/web"
	return in
}()

// benchID returns the n-th of a series of UUIDs.
func benchID(n int64) string {
	const shape = "7d9f1c1e-3b5a-4f5e-8a67-000000000000"
	digits := strconv.FormatInt(n, 10)
	return shape[:len(shape)-len(digits)] + digits
}

// BenchmarkReplay measures the commit of an intent that is already decided.
func BenchmarkReplay(b *testing.B) {
	l := open(b, openEmbedded(b), func(c *Config) { c.Now = time.Now })
	e := entry(benchIntent, engine.Allow)
	setCallers(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := decide(b.Context(), l, "acme", e); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkCaller measures the processor cost of a commit for its caller, without the waiting time.
func BenchmarkCaller(b *testing.B) {
	l := open(b, noop{newFake()}, func(c *Config) { c.Now = time.Now })
	e := entry(benchIntent, engine.Allow)
	b.Run("begin", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			reservation, err := l.Reserve(b.Context(), nil, "acme", plenty)
			must(b, err)
			reservation.Release()
		}
	})
	reservation, err := l.Reserve(b.Context(), nil, "acme", plenty)
	must(b, err)
	defer reservation.Release()
	e.Reservation = reservation
	b.Run("project", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r, err := project(&l.cfg, &e)
			must(b, err)
			r.Receipt.LeafHash()
		}
	})
	b.Run("digest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			IntentDigest(e.Intent)
		}
	})
}

// BenchmarkFloor measures the two unavoidable parts of a commit: the signature and the write to the
// store.
func BenchmarkFloor(b *testing.B) {
	b.Run("sign", func(b *testing.B) {
		key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		head := make([]byte, 113)
		b.ReportAllocs()
		for b.Loop() {
			ed25519.Sign(key, head)
		}
	})
	for _, size := range []int{1, 64} {
		b.Run("store=embedded/batch="+strconv.Itoa(size), func(b *testing.B) { benchmarkStore(b, size) })
	}
}

// benchmarkStore measures how long the store takes to commit a batch. As much work as possible is
// done before the measurement: the records are made and sealed.
func benchmarkStore(b *testing.B, size int) {
	store := openEmbedded(b)
	l := open(b, noop{newFake()}, func(c *Config) { c.Now = time.Now })
	c := l.committer
	reservation, err := l.Reserve(b.Context(), nil, "acme", plenty)
	must(b, err)
	defer reservation.Release()
	e := entry(benchIntent, engine.Allow)
	var n int64
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		batch := make([]*waiter, size)
		records := make([]*storage.Record, size)
		for i := range batch {
			n++
			in := *e.Intent
			in.IntentID = benchID(n)
			reservation.id, reservation.at = l.ids.next(time.Now())
			r, err := project(&l.cfg, &Entry{Reservation: reservation, Intent: &in, PolicyVersion: 1, Result: e.Result})
			must(b, err)
			batch[i], records[i] = waiterOf(r), r
			batch[i].places[0].leaf = r.Receipt.LeafHash()
		}
		tip, err := store.Tip(b.Context())
		must(b, err)
		all := storage.Batch{Records: records}
		_, head, err := c.sealer(batch)(tip, all)
		must(b, err)
		b.StartTimer()
		if _, err := store.Append(b.Context(), all, func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			return all, head, nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/record")
}
