package decisionlog_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// BenchmarkFile measures how fast a backlog in the embedded store goes to a file. A head has 64 rows.
func BenchmarkFile(b *testing.B) {
	const batch = 64
	dir := b.TempDir()
	store, err := embedded.Open(filepath.Join(dir, "store"), embedded.Options{Log: slog.New(slog.DiscardHandler), WriteBehind: 64})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	docs := registry.New(store)
	if err := docs.BeginSink(b.Context(), "file", nil); err != nil {
		b.Fatal(err)
	}
	w := storagetest.NewWriter()
	rows := (b.N/batch + 1) * batch
	for range rows / batch {
		all := make([]*storage.Record, batch)
		for i := range all {
			all[i] = w.Record("org")
		}
		if _, err := w.Commit(b.Context(), store, all...); err != nil {
			b.Fatal(err)
		}
	}
	sink, err := decisionlog.OpenFile(filepath.Join(dir, "rows.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	counted := &counting{Sink: sink, want: rows, stop: stop}
	f, err := decisionlog.Open(b.Context(), decisionlog.Config{
		History: store, Positions: docs, Sink: counted, Name: "file", Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	f.Run(ctx)
	b.StopTimer()
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	if counted.got != rows {
		b.Errorf("%d rows, want %d", counted.got, rows)
	}
}

// counting calls stop once it has sent what is wanted.
type counting struct {
	decisionlog.Sink
	got, want int
	stop      func()
}

func (c *counting) Send(ctx context.Context, rows []decisionlog.Row) error {
	err := c.Sink.Send(ctx, rows)
	if c.got += len(rows); c.got >= c.want {
		c.stop()
	}
	return err
}
