package mongodb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

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

// appender appends batches of new records, for which its handle already has places.
type appender struct {
	*Store
	*testing.B
	seal storage.Seal
	size int
	n    *uint64 // how many records were made
	// repeat makes records of this one's intent, in places of new ones.
	repeat []*storage.Record
	took   []time.Duration
}

// next appends a batch.
func (a *appender) next() {
	if len(a.took)%40 == 0 { // gets places for 40 batches
		for org := range 100 {
			a.quotas.add(meter{fmt.Sprintf("org-%d", org), 202611}, int64(40*a.size/100+a.size))
		}
	}
	batch := storage.Batch{Records: make([]*storage.Record, a.size)}
	for i := range batch.Records {
		batch.Records[i] = benchRecord(*a.n)
		*a.n++
	}
	for i, r := range a.repeat {
		again := *batch.Records[i]
		again.OrganizationID, again.IntentID = r.OrganizationID, r.IntentID
		batch.Records[i] = &again
	}
	began := time.Now()
	existing, err := a.Append(a.Context(), batch, a.seal)
	a.took = append(a.took, time.Since(began))
	if err != nil {
		a.Fatal(err)
	}
	for i, r := range existing.Records {
		if (r != nil) != (i < len(a.repeat)) {
			a.Fatalf("record %d of %d that are decided already is %v", i, len(a.repeat), r)
		}
	}
}

// report reports percentiles of the times that Appends took.
func (a *appender) report(name string) {
	slices.Sort(a.took)
	for _, p := range []int{50, 99} {
		a.ReportMetric(1e3*a.took[len(a.took)*p/100].Seconds(), fmt.Sprintf("%sp%d-ms", name, p))
	}
}

// appended is a replica set for appends. The answers of far members take 20 ms.
type appended struct {
	members int
	far     bool
}

func (s appended) String() string { return fmt.Sprintf("members=%d/far=%t", s.members, s.far) }

// open starts the set and opens handles on it.
func (s appended) open(b *testing.B, size, handles int) (set *mongotest.Set, all []*appender) {
	start := mongotest.For
	if s.far {
		start = mongotest.ProxiedFor
	}
	set = start(b, s.members)
	o, n := newDatabase(b, set), new(uint64)
	for range handles {
		all = append(all, &appender{Store: openTest(b, o), B: b, seal: storagetest.Unsigned(), size: size, n: n})
	}
	if s.far {
		must(b, set.Delay(20*time.Millisecond))
	}
	return set, all
}

// BenchmarkAppend appends batches to a replica set. client-µs/row is the processor time of this process, and
// server-µs/row is that of all members.
func BenchmarkAppend(b *testing.B) {
	for _, test := range []struct {
		appended
		size int
	}{{appended{1, false}, 64}, {appended{1, false}, 256}, {appended{3, false}, 64}, {appended{3, false}, 256}, {appended{3, true}, 64}} {
		b.Run(fmt.Sprintf("%v/rows=%d", test.appended, test.size), func(b *testing.B) {
			set, all := test.open(b, test.size, 1)
			a := all[0]
			spent, began := proc.Spent(set.Processes()...), processorTime(b)
			for b.Loop() {
				a.next()
			}
			rows := float64(len(a.took) * a.size)
			b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64((processorTime(b)-began).Microseconds())/rows, "client-µs/row")
			b.ReportMetric(float64((proc.Spent(set.Processes()...)-spent).Microseconds())/rows, "server-µs/row")
			a.report("")
		})
	}
}

// BenchmarkAppend_Replays appends batches of 64 records, by five handles in turn. The first two have new intents only,
// and the second looks all intents up. In the batches of the others, some intents of one organization are decided
// already: a tenth in each, a tenth in each while all intents are looked up, and one in every tenth batch.
func BenchmarkAppend_Replays(b *testing.B) {
	const size = 64
	for _, test := range []appended{{1, false}, {3, false}, {3, true}} {
		b.Run(test.String(), func(b *testing.B) {
			_, all := test.open(b, size, 5)
			var tenth []*storage.Record // all of one organization
			for ; len(tenth) < size/10; *all[0].n += 100 {
				tenth = append(tenth, benchRecord(*all[0].n))
			}
			if _, err := all[0].Append(b.Context(), storage.Batch{Records: tenth}, all[0].seal); err != nil {
				b.Fatal(err)
			}
			all[2].repeat, all[3].repeat = tenth, tenth
			for i := 0; b.Loop(); i++ {
				all[1].log.looks, all[3].log.looks = looksAfter, looksAfter
				if all[4].repeat = nil; i%10 == 0 {
					all[4].repeat = tenth[:1]
				}
				for _, a := range all {
					a.next()
				}
			}
			for i, name := range []string{"none-", "none-looked-", "tenth-", "tenth-looked-", "few-"} {
				all[i].report(name)
			}
		})
	}
}

// BenchmarkAppend_Sets appends batches of 256 records to replica sets with one member each, of which each has a handle
// of its own, at the same time.
func BenchmarkAppend_Sets(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("sets=%d", n), func(b *testing.B) {
			var members []int
			var all []*appender
			for range n {
				set, one := appended{1, false}.open(b, 256, 1)
				members, all = append(members, set.Processes()...), append(all, one...)
			}
			began, before := processorTime(b), proc.Spent(members...)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var writers sync.WaitGroup
			for _, a := range all {
				writers.Go(func() {
					for left.Add(-1) >= 0 {
						a.next()
					}
				})
			}
			writers.Wait()
			b.StopTimer()
			rows := float64(b.N * 256)
			b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64((processorTime(b)-began).Microseconds())/rows, "client-µs/row")
			b.ReportMetric(float64((proc.Spent(members...)-before).Microseconds())/rows, "server-µs/row")
		})
	}
}

// BenchmarkUpdate updates rules of many organizations concurrently on a replica set with one
// member, with one or two handles. Each organization has its own counter.
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

// BenchmarkSwitch throws a kill switch, which is an update and a Barrier, alone and beside 48 organizations that
// write. There are two handles. An operation is 20 switches alone and then 20 beside the writers.
func BenchmarkSwitch(b *testing.B) {
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			o := newDatabase(b, mongotest.For(b, members))
			stores := []*Store{openTest(b, o), openTest(b, o)}
			var alone, beside []time.Duration
			n := 0
			flip := func(all *[]time.Duration) {
				for range 20 {
					n++
					began := time.Now()
					agent := &engine.Agent{ID: "a", Status: engine.AgentDisabled, Name: fmt.Sprint(n)}
					_, err := stores[0].Update(storage.WithUrgency(b.Context()), "switched", func(tx storage.Tx) error {
						return storage.Agents.Put(tx, "switched", agent)
					})
					if err := errors.Join(err, stores[0].Barrier(b.Context())); err != nil {
						b.Fatal(err)
					}
					*all = append(*all, time.Since(began))
				}
			}
			var updates atomic.Int64
			var wrote time.Duration
			for b.Loop() {
				flip(&alone)
				stop := write(b, stores, 48, &updates)
				began, before := time.Now(), updates.Load()
				flip(&beside)
				wrote += time.Since(began)
				n := updates.Load() - before
				stop()
				updates.Store(before + n)
			}
			for name, all := range map[string][]time.Duration{"alone": alone, "beside": beside} {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"-p99-ms")
			}
			b.ReportMetric(float64(updates.Load())/wrote.Seconds(), "updates/s")
		})
	}
}

// write has organizations update rules until stop is called, and counts the updates.
func write(b *testing.B, stores []*Store, organizations int, updates *atomic.Int64) (stop func()) {
	var writers sync.WaitGroup
	var stopped atomic.Bool
	first := updates.Load()
	for i := range organizations {
		s, org := stores[i%len(stores)], fmt.Sprint("org-", i)
		writers.Go(func() {
			for !stopped.Load() {
				_, err := s.Update(b.Context(), org, func(tx storage.Tx) error {
					return storage.Rules.Put(tx, org, &engine.Rule{ID: "r"})
				})
				if err != nil {
					b.Errorf("Update = %v", err)
					return
				}
				updates.Add(1)
			}
		})
	}
	for updates.Load() < first+int64(organizations)/2 {
		time.Sleep(time.Millisecond)
	}
	return func() {
		stopped.Store(true)
		writers.Wait()
	}
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

// BenchmarkCounts reads the counts of one of 300 organizations, beside replicas whose chains all keep as many counts
// as they may.
func BenchmarkCounts(b *testing.B) {
	kept, today := make(hourSums), storage.DayOf(time.Now())
	for i := range keptCounts {
		org, agent := fmt.Sprint("org-", i%300), fmt.Sprint("an-agent-with-a-name-", i)
		kept[hourKey{org, agent, storage.CountedByAgent, today, int64(i % 24)}] = 12
	}
	packed := kept.pack()
	for _, chains := range []int64{0, 1, 4, 16} {
		b.Run(fmt.Sprint("chains=", chains), func(b *testing.B) {
			s := openTest(b, newDatabase(b, sharedSet(b)))
			for i := range chains {
				chain := uuid.New()
				_, err := s.slots().InsertOne(b.Context(), slotRow{ID: 100 + i, Chain: chain[:], Until: time.Now(), Told: never,
					Sessions: []sessionID{}})
				must(b, err)
				_, err = s.db.Collection(countersName).InsertOne(b.Context(),
					doc("_id", countedKey(chain), counterN, int64(0), counterCounts, packed))
				must(b, err)
			}
			b.ReportAllocs()
			began := processorTime(b)
			for n := 0; b.Loop(); n = 0 {
				must(b, s.Counts(b.Context(), "org-7", storage.CountedByAgent, today, today+1, func(storage.Count) error {
					n++
					return nil
				}))
				if want := 28 * chains; int64(n) != want {
					b.Fatalf("%d counts, want %d", n, want)
				}
			}
			b.ReportMetric(float64((processorTime(b)-began).Microseconds())/float64(b.N), "client-µs")
			b.ReportMetric(float64(len(packed))*float64(chains), "read-B")
		})
	}
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

// BenchmarkRow_Bytes appends rows of 100 organizations in batches of 256, and reports what a row takes on the disk of a
// member.
func BenchmarkRow_Bytes(b *testing.B) {
	set := mongotest.For(b, 1)
	n := uint64(0)
	a := &appender{Store: openTest(b, newDatabase(b, set)), B: b, seal: storagetest.Unsigned(), size: 256, n: &n}
	for b.Loop() {
		a.next()
	}
	if err := set.Admin(b.Context(), doc("fsync", 1)); err != nil { // data in memory alone has no size
		b.Fatal(err)
	}
	var of struct {
		Data    float64            `bson:"size"`
		Storage float64            `bson:"storageSize"`
		All     float64            `bson:"totalIndexSize"`
		Indexes map[string]float64 `bson:"indexSizes"`
	}
	if err := a.db.RunCommand(b.Context(), doc("collStats", recordsName)).Decode(&of); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n), "rows")
	for unit, bytes := range map[string]float64{"bson-B": of.Data, "disk-B": of.Storage, "indexes-B": of.All, "_id-index-B": of.Indexes["_id_"]} {
		b.ReportMetric(bytes/float64(n), unit+"/row")
	}
}
