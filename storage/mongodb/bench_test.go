package mongodb

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/bench/proc"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/storagetest"
)

// benchRecord returns the n-th record of a service with 100 organizations.
func benchRecord(n uint64) *storage.Record {
	r := storagetest.BenchRecord(n, 100)
	r.AuditDigest = "sha256:" + strings.Repeat("2e", 32)
	return r
}

// processorTime returns the processor time of this process. MongoDB's time is not included.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAppend appends batches of 256 records to a replica set with one member. The handle
// already has a place for each record. client-µs/row is the processor time of this process.
func BenchmarkAppend(b *testing.B) {
	const size = 256
	s, seal := openTest(b, newDatabase(b, sharedSet(b))), storagetest.Unsigned()
	n := uint64(0)
	began, ran := processorTime(b), 0
	for b.Loop() {
		batch := storage.Batch{Records: make([]*storage.Record, size)}
		for i := range batch.Records {
			batch.Records[i] = benchRecord(n)
			n++
		}
		if ran%40 == 0 { // gets places for 40 batches
			for org := range 100 {
				s.quotas.add(meter{fmt.Sprintf("org-%d", org), 202611}, 40*size/100+size)
			}
		}
		ran++
		if existing, err := s.Append(b.Context(), batch, seal); err != nil || existing.Records[0] != nil {
			b.Fatalf("Append = %v, %v", existing.Records[0], err)
		}
	}
	rows := float64(ran * size)
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64((processorTime(b)-began).Microseconds())/rows, "client-µs/row")
}

// BenchmarkUpdate updates rules of many organizations concurrently on a replica set with one
// member, with one or two handles. All updates increment the same counter.
func BenchmarkUpdate(b *testing.B) {
	for _, handles := range []int{1, 2} {
		for _, orgs := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("handles=%d/organizations=%d", handles, orgs), func(b *testing.B) {
				o := newDatabase(b, sharedSet(b))
				stores := make([]*Store, handles)
				for i := range stores {
					stores[i] = openTest(b, o)
				}
				benchmarkUpdate(b, stores, orgs)
			})
		}
	}
}

func benchmarkUpdate(b *testing.B, stores []*Store, orgs int) {
	var next atomic.Int64
	var writers sync.WaitGroup
	b.ResetTimer()
	for i := range orgs {
		s, org := stores[i%len(stores)], fmt.Sprint("org-", i)
		writers.Go(func() {
			for next.Add(1) <= int64(b.N) {
				_, err := s.Update(b.Context(), org, func(tx storage.Tx) error {
					return storage.Rules.Put(tx, org, &engine.Rule{ID: "r"})
				})
				if err != nil {
					b.Errorf("Update = %v", err)
					return
				}
			}
		})
	}
	writers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}

// BenchmarkList reads pages of 500 rows, as an export does.
func BenchmarkList(b *testing.B) {
	s, seal := openTest(b, newDatabase(b, sharedSet(b))), storagetest.Unsigned()
	for n := uint64(0); n < 20; n++ {
		batch := storage.Batch{Records: make([]*storage.Record, 1000)}
		for i := range batch.Records {
			batch.Records[i] = benchRecord(n*1000 + uint64(i)) //nolint:gosec // n is small
			batch.Records[i].OrganizationID = "org"
		}
		if _, err := s.Append(b.Context(), batch, seal); err != nil {
			b.Fatal(err)
		}
	}
	rows, p := 0, storage.Page{Limit: 500}
	began := processorTime(b)
	for b.Loop() {
		records, next, err := s.ListRecords(b.Context(), "org", storage.Filter{}, p)
		if err != nil || len(records) != p.Limit {
			b.Fatalf("ListRecords = %d records, %v", len(records), err)
		}
		rows += len(records)
		p.After = next
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64((processorTime(b)-began).Microseconds())/float64(rows), "client-µs/row")
}

// BenchmarkIdle has 16 idle handles on a replica set. An operation is a second. server-%core is the processor
// time of all members, as a part of one core.
func BenchmarkIdle(b *testing.B) {
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			set := mongotest.For(b, members)
			spent := func() time.Duration { return proc.Spent(set.Processes()...) }
			rest := func(seconds int) float64 {
				began, before := time.Now(), spent()
				time.Sleep(time.Duration(seconds) * time.Second)
				return 100 * float64(spent()-before) / float64(time.Since(began))
			}
			time.Sleep(3 * time.Second) // the set has just been made
			alone := rest(b.N)
			o := newDatabase(b, set)
			for range 16 {
				openTest(b, o)
			}
			time.Sleep(2 * lease)
			own := processorTime(b)
			b.ResetTimer()
			beside := rest(b.N)
			b.StopTimer()
			b.ReportMetric(alone, "alone-%core")
			b.ReportMetric(beside, "server-%core")
			b.ReportMetric(100*(processorTime(b)-own).Seconds()/b.Elapsed().Seconds(), "client-%core")
		})
	}
}
