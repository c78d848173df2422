package embedded

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/metricstest"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// commitAt stores a record whose head was signed at a time.
func commitAt(t *testing.T, s *Store, w *storagetest.Writer, at time.Time) {
	t.Helper()
	_, err := s.Append(t.Context(), storage.Batch{Records: []*storage.Record{w.Record("acme")}},
		func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			sealed, head, err := w.Seal(tip, fresh)
			head.UnixMilli = at.UnixMilli()
			return sealed, head, err
		})
	must(t, err)
}

// TestHealthy_NotAfterTheClockWentBack checks a store whose newest decision is later than the clock.
func TestHealthy_NotAfterTheClockWentBack(t *testing.T) {
	for _, test := range []struct {
		behind time.Duration
		ready  bool
	}{{0, true}, {-time.Hour, true}, {25 * time.Second, true}, {time.Minute, false}, {time.Hour, false}} {
		disk, log, reg, w := vfs.NewMem(), new(logged), prometheus.NewRegistry(), storagetest.NewWriter()
		s, err := openQuietly(Options{FS: disk, Log: log.logger(), Metrics: reg})
		must(t, err)
		must(t, s.Healthy(t.Context()))
		commitAt(t, s, w, time.Now().Add(test.behind))
		check := func(when string) {
			t.Helper()
			err := s.Healthy(t.Context())
			if (err == nil) != test.ready || err != nil && !strings.Contains(err.Error(), "set it, since it dates receipts") {
				t.Errorf("Healthy %s of a clock that is behind by %v = %v, want ready = %v", when, test.behind, err, test.ready)
			}
			got := metricstest.Read(t, reg)
			want := max(0, test.behind.Seconds())
			if n := got["writ_store_clock_behind_seconds"].Value; n > want || n < want-20 {
				t.Errorf("writ_store_clock_behind_seconds %s = %v, want %v", when, n, want)
			}
			if n := got["writ_store_trouble clock"].Value; (n == 0) != test.ready {
				t.Errorf("writ_store_trouble of the clock %s = %v, want ready = %v", when, n, test.ready)
			}
		}
		check("after the decision")
		must(t, s.Close())
		s, err = openQuietly(Options{FS: disk, Log: log.logger(), Metrics: reg})
		must(t, err)
		check("after a restart")
		commitAt(t, s, w, time.Now()) // the clock refuses no decision
		check("after another decision")
		if logged := log.errors() > 0; logged == test.ready {
			t.Errorf("%d errors are logged of a clock that is behind by %v", log.errors(), test.behind)
		}
		s.newest.Store(time.Now().UnixMilli()) // the time has come
		must(t, s.Healthy(t.Context()))
		must(t, s.Close())
	}
}
