package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// seed stores n records of org directly, without the ledger. The last record is the newest.
func (h *harness) seed(w *storagetest.Writer, org string, n int, resource string) []*storage.Record {
	h.t.Helper()
	ctx := context.Background()
	records := make([]*storage.Record, n)
	for i := range records {
		records[i] = w.Record(org, func(r *storage.Record) { r.Resource = resource })
	}
	_, err := w.Commit(ctx, h.store.Store, records...)
	must(h.t, err)
	return records
}

func (h *harness) export(org, query string) *reply {
	h.t.Helper()
	key, _ := h.key(org, "history:read")
	return h.do("GET", "/v1/authorizations/export"+query, key, nil)
}

// ids returns the first column of an export.
func ids(t testing.TB, r *reply) []string {
	t.Helper()
	var ids []string
	for i, row := range cells(t, string(r.body)) {
		if i > 0 {
			ids = append(ids, row[0])
		}
	}
	return ids
}

func TestDecision_Plans_ExportNeedsThePlan(t *testing.T) {
	h := start(t)
	h.export(acme, "").wantProblem(http.StatusForbidden, "export_not_entitled")
	for _, plan := range []string{"pro", "unheard-of"} {
		h.subscribe(acme, plan)
		h.export(acme, "").wantProblem(http.StatusForbidden, "export_not_entitled")
	}
	h.subscribe(acme, "business")
	h.export(acme, "").wantStatus(http.StatusOK)
}

func TestDecision_Resources_ExportTakesTheFiltersOfTheList(t *testing.T) {
	h := start(t)
	h.subscribe(acme, "business")
	t0 := h.clock.Now()
	h.decideOneAMinute()
	from := url.QueryEscape(t0.Add(time.Minute).Format(time.RFC3339))
	for _, query := range []string{
		"", "?decision=allow", "?decision=approval_required", "?agent_id=other", "?agent_id=other&action_type=http_get",
		"?policy_id=" + policyID, "?agent_id=nobody", "?from=" + from, "?to=" + from,
	} {
		list := read[page[storage.Record]](h.do("GET", "/v1/authorizations"+query, h.operator(acme), nil).wantStatus(http.StatusOK))
		var want []string
		for _, row := range list.Data {
			want = append(want, row.DecisionID)
		}
		if diff := cmp.Diff(want, ids(t, h.export(acme, query).wantStatus(http.StatusOK))); diff != "" {
			t.Errorf("export%s (-list +export):\n%s", query, diff)
		}
	}
	for query, field := range map[string]string{"?decision=maybe": "decision", "?agent=x": "agent", "?limit=1": "limit", "?cursor=x": "cursor"} {
		h.export(acme, query).wantField(field)
	}
	r := h.export(acme, "")
	for name, want := range map[string]string{
		"Content-Type":        "text/csv; charset=utf-8; header=present",
		"Content-Disposition": `attachment; filename="authorizations-2026-11-21.csv"`,
	} {
		r.wantHeader(name, want)
	}
	if r.header.Get(headerRequestID) == "" || r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers = %v, want those that every response has", r.header)
	}
	h.wantNoExports()
}

// TestExport_HEAD checks the bytes on the wire. A byte of a body would corrupt the next response on
// the connection.
func TestExport_HEAD(t *testing.T) {
	h := start(t)
	h.subscribe(acme, "business")
	c, err := net.Dial("tcp", h.addr)
	must(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for range 2 {
		_, err = fmt.Fprintf(c, "HEAD /v1/authorizations/export HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", h.operator(acme))
		must(t, err)
		res, err := http.ReadResponse(in, &http.Request{Method: http.MethodHead})
		must(t, err)
		if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") {
			t.Errorf("HEAD = %s, %v, want 200 and text/csv", res.Status, res.Header)
		}
		must(t, res.Body.Close())
	}
	if n := in.Buffered(); n > 0 {
		t.Errorf("%d bytes follow the answer to HEAD, want none", n)
	}
	h.wantNoExports()
}

// wantNoExports waits until no export of acme or rival is running.
func (h *harness) wantNoExports() {
	h.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !h.exportsAreFree(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatal("exports are under way, want none")
		}
	}
}

func (h *harness) exportsAreFree() bool {
	for _, org := range []string{acme, rival} {
		for range maxExports / 16 {
			end, ok := h.server.exports.Begin(org)
			if !ok {
				return false
			}
			defer end()
		}
	}
	return true
}

func TestExport_EveryRowOnceOverManyPages(t *testing.T) {
	h := start(t)
	h.subscribe(acme, "business")
	records := h.seed(storagetest.NewWriter(), acme, 3*exportPage+7, "prod")
	var want []string
	for i := len(records) - 1; i >= 0; i-- {
		want = append(want, records[i].DecisionID)
	}
	same(t, "export", want, ids(t, h.export(acme, "")))
	h.wantNoExports()
}

// pagedStore calls before(n) before it reads page n of the history. The first page has n = 1.
type pagedStore struct {
	storage.Store
	before func(n int) error
	pages  atomic.Int64
}

// ListRecords implements storage.Store.
func (p *pagedStore) ListRecords(ctx context.Context, org string, f storage.Filter, page storage.Page) ([]*storage.Record, string, error) {
	if err := p.before(int(p.pages.Add(1))); err != nil {
		return nil, "", err
	}
	return p.Store.ListRecords(ctx, org, f, page)
}

// exporting starts a server. Its organization acme has n rows of about 10 KiB each. A few hundred
// such rows exceed the kernel's socket buffers.
func exporting(t *testing.T, n int, before func(int) error, mods ...func(*setup)) (*harness, *pagedStore) {
	t.Helper()
	store := &pagedStore{before: before}
	h := start(t, append(mods, func(c *setup) {
		store.Store = c.Service.Store
		c.Service.Store = store
	})...)
	h.subscribe(acme, "business")
	w := storagetest.NewWriter()
	for range n / exportPage {
		h.seed(w, acme, exportPage, strings.Repeat("x", 10_000))
	}
	return h, store
}

func noFault(int) error { return nil }

// open begins an export and returns the response with an unread body.
func (h *harness) open(org string) *http.Response {
	h.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+h.addr+"/v1/authorizations/export", nil)
	must(h.t, err)
	req.Header.Set("Authorization", "Bearer "+h.operator(org))
	res, err := h.client.Do(req)
	must(h.t, err)
	if res.StatusCode != http.StatusOK {
		h.t.Fatalf("export = %d, want 200", res.StatusCode)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() }) // the test may have closed the body already
	return res
}

// TestDecision_Resources_ExportStreamsInConstantMemory checks that the live memory does not grow
// with the number of sent rows. Each row has 10 KiB.
func TestDecision_Resources_ExportStreamsInConstantMemory(t *testing.T) {
	const rows, room = 16 * exportPage, 8 << 20
	var (
		mu   sync.Mutex
		live []uint64 // live memory after each page
	)
	h, _ := exporting(t, rows, func(int) error {
		mu.Lock()
		defer mu.Unlock()
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		live = append(live, m.HeapAlloc)
		return nil
	})
	// The first export fills the store's cache. Without cgo that cache is in Go's heap.
	for range 2 {
		mu.Lock()
		live = nil
		mu.Unlock()
		res := h.open(acme)
		n, err := io.Copy(io.Discard, res.Body)
		must(t, errors.Join(err, res.Body.Close()))
		if n < rows*10_000 {
			t.Fatalf("an export of %d bytes, want %d rows of 10,000 at least", n, rows)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for page, bytes := range live {
		if bytes > live[0]+room {
			t.Errorf("page %d begins with %d bytes live, want at most %d more than the %d of the first", page, bytes, room, live[0])
		}
	}
}

func TestExport_AStoreThatFails(t *testing.T) {
	t.Run("at once is a 500 and no file", func(t *testing.T) {
		h := start(t)
		h.subscribe(acme, "business")
		h.store.fail("ListRecords", errors.New("unreachable"))
		h.export(acme, "").wantProblem(http.StatusInternalServerError, codeInternal)
		h.wantNoExports()
	})
	for name, fault := range map[string]func() error{
		"in mid-stream":   func() error { return errors.New("unreachable") },
		"in a panic even": func() error { panic("boom") },
	} {
		t.Run(name+" cuts the response off without its end", func(t *testing.T) {
			h, _ := exporting(t, 3*exportPage, func(n int) error {
				if n == 3 {
					return fault()
				}
				return nil
			})
			n, err := io.Copy(io.Discard, h.open(acme).Body)
			if !errors.Is(err, io.ErrUnexpectedEOF) || n == 0 {
				t.Errorf("reading the export = %d bytes, %v, want some and %v", n, err, io.ErrUnexpectedEOF)
			}
			h.wantNoExports()
			if log := h.log.String(); !strings.Contains(log, "an export was cut off") {
				t.Errorf("log = %s, want the cause", log)
			}
			h.do("GET", "/health", "", nil).wantStatus(http.StatusOK)
		})
	}
}

// TestExport_AFailedOneHasNoLastChunk checks on the wire that a failed export sends no last chunk.
// A client can therefore see that the export is incomplete.
func TestExport_AFailedOneHasNoLastChunk(t *testing.T) {
	const last = "\r\n0\r\n\r\n"
	for name, fails := range map[string]bool{"whole": false, "failed": true} {
		t.Run(name, func(t *testing.T) {
			h, _ := exporting(t, 3*exportPage, func(n int) error {
				if fails && n == 3 {
					return errors.New("unreachable")
				}
				return nil
			})
			c, err := net.Dial("tcp", h.addr)
			must(t, err)
			defer c.Close()
			must(t, c.SetDeadline(time.Now().Add(20*time.Second)))
			_, err = fmt.Fprintf(c, "GET /v1/authorizations/export HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n",
				h.operator(acme))
			must(t, err)
			got, err := io.ReadAll(c)
			must(t, err)
			if len(got) < exportPage*10_000 || strings.HasSuffix(string(got), last) == fails {
				t.Errorf("%d bytes that end in %q; the export failed: %t", len(got), got[max(0, len(got)-16):], fails)
			}
		})
	}
}

func TestExport_AClientThatGoesStopsIt(t *testing.T) {
	h, store := exporting(t, 16*exportPage, noFault)
	res := h.open(acme)
	must(t, res.Body.Close())
	h.wantNoExports()
	if n := store.pages.Load(); n > 8 {
		t.Errorf("%d pages were read for a client that had gone, want few of 16", n)
	}
}

func TestExport_TimeoutsAreForEachPage(t *testing.T) {
	const write = 300 * time.Millisecond
	limits := func(c *setup) { c.Limits.Write, c.Limits.Handle = write, write }
	t.Run("a long export is not cut off", func(t *testing.T) {
		h, store := exporting(t, 8*exportPage, func(n int) error {
			if n > 1 {
				<-time.After(write / 4) // socket deadlines use the real clock
			}
			return nil
		}, limits)
		n, err := io.Copy(io.Discard, h.open(acme).Body)
		if err != nil || n < 8*exportPage*10_000 || store.pages.Load() != 8 {
			t.Errorf("export = %d bytes, %v over %d pages, want all 8", n, err, store.pages.Load())
		}
	})
	t.Run("a client that does not read is", func(t *testing.T) {
		h, _ := exporting(t, 8*exportPage, noFault, limits)
		h.open(acme)
		h.wantNoExports()
	})
}

func TestExport_ShutdownDoesNotWaitForAClientThatDoesNotRead(t *testing.T) {
	h, _ := exporting(t, 8*exportPage, noFault, func(c *setup) { c.Limits.Write = time.Hour })
	h.open(acme)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown = %v, want %v", err, context.Canceled)
	}
	if _, ok := h.server.exports.Begin(acme); ok {
		t.Error("an export began after Shutdown")
	}
}

func TestExport_TooManyAtOnce(t *testing.T) {
	h, _ := exporting(t, 8*exportPage, noFault, func(c *setup) { c.Limits.Write = time.Hour })
	var open []*http.Response
	for range maxExports / 16 {
		open = append(open, h.open(acme))
	}
	r := h.export(acme, "")
	if r.wantProblem(http.StatusTooManyRequests, "too_many_exports"); r.header.Get("Retry-After") == "" {
		t.Errorf("Retry-After is missing: %v", r.header)
	}
	h.subscribe(rival, "business")
	h.export(rival, "").wantStatus(http.StatusOK)
	for _, res := range open {
		must(t, res.Body.Close())
	}
	h.wantNoExports()
}
