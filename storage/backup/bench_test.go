package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/storagetest"
)

// BenchmarkBackup makes backups of a store of WRIT_BENCH_ROWS rows (100,000) while 200 batches of eight decisions a
// second are committed. full-s is how long the first backup takes, and next-s one after it. The milliseconds are
// durations of commits: before the backups (quiet), during the first one (full) and during the later ones (next). The
// backups are links beside the store, or copies in WRIT_BENCH_BACKUPS on another file system. Run it with
// -benchtime 1x.
func BenchmarkBackup(b *testing.B) {
	rows := 100_000
	if text := os.Getenv("WRIT_BENCH_ROWS"); text != "" {
		var err error
		rows, err = strconv.Atoi(text)
		must(b, err)
	}
	data, _ := filled(b, 0)
	s, err := embedded.Open(data.Store(), embedded.Options{})
	must(b, err)
	defer func() { must(b, s.Close()) }()
	w := storagetest.NewWriter()
	commit := func(size int) {
		batch := make([]*storage.Record, size)
		for i := range batch {
			batch[i] = w.Record("acme")
		}
		if _, err := w.Commit(b.Context(), s, batch...); err != nil {
			b.Error(err)
		}
	}
	for n := 0; n < rows; n += 1000 {
		commit(1000)
	}
	dir := filepath.Join(b.TempDir(), "backups")
	if elsewhere := os.Getenv("WRIT_BENCH_BACKUPS"); elsewhere != "" {
		dir, err = os.MkdirTemp(elsewhere, "writ-bench-")
		must(b, err)
		defer func() { must(b, os.RemoveAll(dir)) }()
	}
	during := func(name string, f func()) {
		var took []time.Duration
		var working sync.WaitGroup
		stop := make(chan struct{})
		working.Go(func() {
			for tick := time.NewTicker(5 * time.Millisecond); ; {
				select {
				case <-stop:
					tick.Stop()
					return
				case <-tick.C:
				}
				start := time.Now()
				commit(8)
				took = append(took, time.Since(start))
			}
		})
		f()
		close(stop)
		working.Wait()
		slices.Sort(took)
		for _, part := range []float64{0.5, 0.99} {
			at := took[int(part*float64(len(took)))]
			b.ReportMetric(float64(at.Microseconds())/1000, fmt.Sprintf("%s-p%.0f-ms", name, 100*part))
		}
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, name+"-max-ms")
	}
	for b.Loop() {
		made := 0
		make1 := func() float64 {
			made++
			start := time.Now()
			_, err := Make(b.Context(), config(s, dir), fmt.Sprintf("backup-%d", made))
			must(b, err)
			return time.Since(start).Seconds()
		}
		during("quiet", func() { time.Sleep(10 * time.Second) })
		during("full", func() { b.ReportMetric(make1(), "full-s") })
		during("next", func() {
			longest, begun := 0.0, time.Now()
			for time.Since(begun) < 10*time.Second {
				longest = max(longest, make1())
				time.Sleep(time.Second)
			}
			b.ReportMetric(longest, "next-s")
		})
	}
}
