package embedded

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

func benchRecord(n uint64) *storage.Record { return storagetest.BenchRecord(n, 16) }

func benchStore(b *testing.B, fs vfs.FS) *Store {
	b.Helper()
	s, err := Open(b.TempDir(), Options{FS: fs, Log: (*logged)(nil).logger(), MinFreeBytes: 1})
	must(b, err)
	b.Cleanup(func() { closeTest(b, s) })
	return s
}

// BenchmarkCommit measures durable commits of batches of new records. On real files it includes the
// machine's fsync. In memory it measures only processor time. rec/s is records per second, and
// ns/rec is the time per record.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("disk/batch=%d", size), func(b *testing.B) { benchCommit(b, vfs.Default, size) })
		b.Run(fmt.Sprintf("memory/batch=%d", size), func(b *testing.B) { benchCommit(b, vfs.NewMem(), size) })
	}
}

func reportRecords(b *testing.B, records int) {
	b.Helper()
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "rec/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/rec")
}

func benchCommit(b *testing.B, fs vfs.FS, size int) {
	s := benchStore(b, fs)
	n := uint64(0)
	batch, unsigned := make([]*storage.Record, size), storagetest.Unsigned()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range batch {
			n++
			batch[i] = benchRecord(n)
		}
		b.StartTimer()
		existing, err := s.Append(b.Context(), storage.Batch{Records: batch}, unsigned)
		if err != nil || slices.ContainsFunc(existing.Records, func(r *storage.Record) bool { return r != nil }) {
			b.Fatalf("Commit = %v, %v; want all fresh", existing, err)
		}
	}
	reportRecords(b, int(n))
}

// BenchmarkRemoveRecords measures how long retention takes to remove 1000 rows. Writes of documents
// wait for such a removal, but commits do not.
func BenchmarkRemoveRecords(b *testing.B) {
	s := benchStore(b, vfs.Default)
	const rows = 100_000
	stored, removed, unsigned := uint64(0), 0, storagetest.Unsigned()
	fill := func() {
		for range rows / 1000 {
			batch := make([]*storage.Record, 1000)
			for i := range batch {
				stored++
				batch[i] = benchRecord(stored)
				batch[i].OrganizationID = "org"
			}
			if _, err := s.Append(b.Context(), storage.Batch{Records: batch}, unsigned); err != nil {
				b.Fatal(err)
			}
		}
	}
	before := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		if removed == int(stored) {
			b.StopTimer()
			fill()
			b.StartTimer()
		}
		n, err := s.RemoveRecords(b.Context(), "org", before, storage.Expired{Records: 1000})
		if err != nil || n.Records != 1000 {
			b.Fatalf("RemoveRecords = %+v, %v, want 1000", n, err)
		}
		removed += n.Records
	}
	reportRecords(b, removed)
}

// BenchmarkTrim measures the write of one more document, with a read of an earlier one and the
// removal of its signed change, in a store of 2,000 documents.
func BenchmarkTrim(b *testing.B) {
	s := benchStore(b, vfs.NewMem())
	n := 0
	write := func() {
		n++
		rule := &engine.Rule{ID: fmt.Sprint(n)}
		revision, err := s.Update(b.Context(), "org", func(tx storage.Tx) error { return storage.Rules.Put(tx, "org", rule) })
		must(b, err)
		err = s.View(b.Context(), func(r storage.Reader) error {
			_, err := storage.Rules.Get(r, "org", fmt.Sprint(1+n/2))
			return err
		})
		must(b, err)
		must(b, s.Trim(b.Context(), []storage.Change{{Org: "org", Revision: revision}}))
	}
	for range 2_000 {
		write()
	}
	for b.Loop() {
		write()
	}
}
