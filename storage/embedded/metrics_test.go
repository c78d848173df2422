package embedded

import (
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/metricstest"
)

func TestMetrics_ShowTroubleAndRoomUntilClose(t *testing.T) {
	fs := vfs.NewMem()
	free := func(n uint64) { fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40}) }
	free(1 << 40)
	reg := prometheus.NewRegistry()
	s, err := Open("db", Options{FS: fs, Log: slog.New(slog.DiscardHandler), Metrics: reg})
	must(t, err)
	for _, test := range []struct {
		free uint64
		want float64
	}{{1 << 40, 0}, {1 << 20, 1}, {1 << 40, 0}} {
		free(test.free)
		healthy := s.Healthy(t.Context()) == nil
		got := metricstest.Read(t, reg)
		if trouble := got["writ_store_trouble free space"].Value; trouble != test.want || healthy != (test.want == 0) {
			t.Errorf("with %d bytes free, trouble = %v and healthy = %v, want %v", test.free, trouble, healthy, test.want)
		}
		if n := got["writ_store_free_bytes"].Value; n != float64(test.free) {
			t.Errorf("writ_store_free_bytes = %v, want %d", n, test.free)
		}
	}
	if n := metricstest.Read(t, reg)["writ_store_disk_bytes"].Value; n <= 0 {
		t.Errorf("writ_store_disk_bytes = %v, want what an empty store takes", n)
	}
	if _, ok := metricstest.Read(t, reg)["writ_store_trouble stopped"]; !ok {
		t.Error("a trouble that is not there is not shown as 0")
	}
	must(t, s.Close())
	if got := metricstest.Read(t, reg); len(got) != 0 {
		t.Errorf("metrics after Close = %v, want none", got)
	}
}
