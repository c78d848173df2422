//go:build unix

package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// BenchmarkFill commits 1,600,000 records in batches of 64 to an empty store. A service makes about
// as many records in a day. cpu-ns/rec is the processor time per record in the last
// quarter. It includes compactions but not the creation of the records. compacted-B/rec is the
// number of bytes that compactions wrote. rows-B/rec and keys-B/rec are bytes on the disk at the
// end, without preallocated space. open-ms is how long the next Open takes, and filter-ms when its
// filter has all intents. The other milliseconds are durations of commits. Run it with -benchtime 1x.
func BenchmarkFill(b *testing.B) {
	const (
		records = 1_600_000
		quarter = records / 4
		size    = 64
	)
	unsigned := storagetest.Unsigned()
	for b.Loop() {
		s, err := Open(b.TempDir(), Options{Log: (*logged)(nil).logger(), MinFreeBytes: 1})
		must(b, err)
		var making, before time.Duration
		var commits []time.Duration
		for n := uint64(0); n < records; {
			if n == records-quarter {
				before = processorTime(b) - making
			}
			start := time.Now()
			batch := make([]*storage.Record, size)
			for i := range batch {
				n++
				batch[i] = benchRecord(n)
			}
			making += time.Since(start)
			start = time.Now()
			if _, err := s.Append(b.Context(), storage.Batch{Records: batch}, unsigned); err != nil {
				b.Fatal(err)
			}
			commits = append(commits, time.Since(start))
		}
		b.ReportMetric(float64(processorTime(b)-making-before)/quarter, "cpu-ns/rec")
		var compacted uint64
		for _, l := range s.db.Metrics().Levels {
			compacted += l.TableBytesCompacted
		}
		b.ReportMetric(float64(compacted)/records, "compacted-B/rec")
		var rows int64
		for _, segment := range s.log.Segments() {
			rows += segment.Bytes
		}
		must(b, s.keepNow())
		tables, err := filepath.Glob(filepath.Join(s.health.dir, "*.index"))
		must(b, err)
		keys := int64(s.db.Metrics().DiskSpaceUsage()) //nolint:gosec // it fits on a disk
		for _, name := range tables {
			info, err := os.Stat(name)
			must(b, err)
			keys += info.Size()
		}
		b.ReportMetric(float64(rows)/records, "rows-B/rec")
		b.ReportMetric(float64(keys)/records, "keys-B/rec")
		must(b, s.Close())
		start := time.Now()
		again, err := Open(s.health.dir, Options{Log: (*logged)(nil).logger(), MinFreeBytes: 1})
		must(b, err)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "open-ms")
		until(b, func() bool { return again.tables.Lacks(4) })
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "filter-ms")
		must(b, again.Close())
		slices.Sort(commits)
		for name, part := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "p99.9-ms": 0.999} {
			b.ReportMetric(float64(commits[int(part*float64(len(commits)))].Microseconds())/1000, name)
		}
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
