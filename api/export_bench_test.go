package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/mongodb"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// benchRows returns the number of rows for the benchmarks, from WRIT_BENCH_ROWS. The default is
// small, so that the benchmarks end soon.
func benchRows(b *testing.B) int {
	b.Helper()
	s := os.Getenv("WRIT_BENCH_ROWS")
	if s == "" {
		return 100_000
	}
	n, err := strconv.Atoi(s)
	must(b, err)
	return n
}

// benchStore opens a store for the benchmarks. The default store is on disk.
// WRIT_BENCH_STORE=mongodb selects a MongoDB replica set with one member.
func benchStore(b *testing.B, dir string) storage.Store {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("WRIT_BENCH_STORE") == "mongodb" {
		store, err := mongodb.Open(context.Background(), mongodb.Options{URI: mongotest.For(b, 1).URI(), Log: log})
		must(b, err)
		return store
	}
	store, err := embedded.Open(dir, embedded.Options{MinFreeBytes: 1, Log: log})
	must(b, err)
	return store
}

// historyHarness starts a server whose store has benchRows rows. The rows are divided among the
// organizations org-0, org-1 and so on.
func historyHarness(b *testing.B, orgs int) *harness {
	b.Helper()
	store := benchStore(b, b.TempDir())
	b.Cleanup(func() { must(b, store.Close()) }) // closes the store after the server has stopped
	must(b, storagetest.PutSubscription(context.Background(), registry.New(store), &storage.Subscription{OrganizationID: "org-0", Plan: "business"}))
	for n, rows := 0, benchRows(b); n < rows; {
		batch := make([]*storage.Record, min(1000, rows-n))
		for i := range batch {
			batch[i] = historyRow(n, orgs)
			n++
		}
		_, err := store.Append(context.Background(), storage.Batch{Records: batch}, storagetest.Unsigned())
		must(b, err)
	}
	return start(b, func(c *setup) { c.Service.Store = store })
}

// historyRow returns the n-th row of a typical history. One row in ten is a deny.
func historyRow(n, orgs int) *storage.Record {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Millisecond)
	var id uuid.UUID
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[8], id[15] = 0x70, 0x80, byte(n)
	decision := engine.Allow
	if n/orgs%10 == 0 {
		decision = engine.Deny
	}
	return &storage.Record{
		OrganizationID: fmt.Sprintf("org-%d", n%orgs),
		IntentID:       uuid.NewSHA1(uuid.Nil, id[:]).String(), IntentDigest: "sha256:" + strings.Repeat("0a", 32),
		DecisionID: id.String(), PolicyID: policyID, PolicyVersion: 3, AgentID: "team-a/deployer", ActionType: "deploy",
		Resource: "https://example.com/prod/api", Cost: &engine.Cost{AmountMinor: 1250, Currency: "EUR"},
		MetadataKeys: []string{"env", "ticket"}, Decision: decision,
		Reasons:  []string{"policy.allowed: the policy allows the action"},
		IssuedAt: "2026-11-21T09:59:59Z", DecidedAt: at,
		Receipt: receipt.Receipt{
			Decision: decision.String(), DecisionID: id.String(), Digest: "sha256:" + strings.Repeat("1f", 32),
			Exp: at.Unix() + 300, KeyID: "9ZP03Nu8GrXPAUkbKNxHOKBzxPX83SShgFkRNK-f2lw",
		},
	}
}

// BenchmarkExport measures whole exports over loopback. The client is in the same process, and the
// caches are warm. rows/s is the throughput. MiB-rss and MiB-heap are the growth of memory, as the
// system and Go report it. cpu-µs/row is the processor time for each row, in both server and
// client. Other load on the machine changes this time less than rows/s.
func BenchmarkExport(b *testing.B) {
	h := historyHarness(b, 1)
	rows := 0
	for range 3 { // three exports fill the store's cache
		rows = h.readExport("org-0")
	}
	peaks, cpu := watchMemory(), cpuTime(b)
	b.ReportAllocs()
	for b.Loop() {
		if n := h.readExport("org-0"); n != rows {
			b.Fatalf("an export of %d rows, want %d", n, rows)
		}
	}
	cpu = cpuTime(b) - cpu
	rss, heap := peaks()
	if rows != benchRows(b) {
		b.Fatalf("an export of %d rows, want %d", rows, benchRows(b))
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(rows*b.N), "cpu-µs/row")
	b.ReportMetric(rss, "MiB-rss")
	b.ReportMetric(heap, "MiB-heap")
}

// readExport reads an export and returns the number of its rows.
func (h *harness) readExport(org string) int {
	req, err := http.NewRequest(http.MethodGet, "http://"+h.addr+"/v1/authorizations/export", nil)
	must(h.t, err)
	req.Header.Set("Authorization", "Bearer "+h.operator(org))
	h.client.Timeout = 10 * time.Minute
	res, err := h.client.Do(req)
	must(h.t, err)
	defer res.Body.Close()
	buf := make([]byte, 64<<10)
	for lines := 0; ; {
		n, err := res.Body.Read(buf)
		lines += bytes.Count(buf[:n], []byte("\n"))
		if err == io.EOF {
			return lines - 1
		}
		must(h.t, err)
	}
}

// cpuTime returns the processor time of this process.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watchMemory samples the memory until the returned function is called. The function returns the
// growth in MiB: the peak minus the first sample.
func watchMemory() func() (rss, heap float64) {
	debug.FreeOSMemory()
	rss0, heap0 := memory()
	var rssPeak, heapPeak atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-tick.C:
				rss, heap := memory()
				rssPeak.Store(max(rssPeak.Load(), rss))
				heapPeak.Store(max(heapPeak.Load(), heap))
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	return func() (float64, float64) {
		close(stop)
		<-done
		return float64(rssPeak.Load()-rss0) / (1 << 20), float64(heapPeak.Load()-heap0) / (1 << 20)
	}
}

// memory returns the resident size and the Go heap in use, in bytes.
func memory() (rss, heap int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var size, resident int64
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
			resident = 0 // the format is unknown: only the heap is reported
		}
	}
	return resident * int64(os.Getpagesize()), int64(m.HeapInuse)
}

// BenchmarkHistoryPage measures pages of 50 rows over loopback. The history has the rows of 100
// organizations. One case reads the newest page. All other cases continue at a cursor.
func BenchmarkHistoryPage(b *testing.B) {
	h := historyHarness(b, 100)
	for _, query := range []string{"", "decision=allow", "decision=deny"} {
		for _, deep := range []bool{false, true} {
			b.Run(fmt.Sprintf("filter=%s/deep=%v", query, deep), func(b *testing.B) {
				path := "/v1/authorizations?limit=50&" + query
				if deep {
					list := read[page[storage.Record]](h.do("GET", "/v1/authorizations?limit=50&"+query, h.operator("org-7"), nil).wantStatus(http.StatusOK))
					path += "&cursor=" + *list.NextCursor
				}
				var r *reply
				token, n := h.operator("org-7"), 0
				b.ReportAllocs()
				for b.Loop() {
					r = h.do("GET", path, token, nil)
					n++
				}
				var list page[storage.Record]
				if err := json.Unmarshal(r.body, &list); err != nil || r.status != http.StatusOK || len(list.Data) == 0 {
					b.Fatalf("%d with %d rows, %v", r.status, len(list.Data), err)
				}
			})
		}
	}
}
