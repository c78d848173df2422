package retention

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/metricstest"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/storagetest"
)

var now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// world is a sweeper over a store in memory. The sweeper's waits return at once and are recorded.
type world struct {
	*testing.T
	store     *faulty
	writer    *storagetest.Writer
	cfg       Config
	log       bytes.Buffer
	waits     []time.Duration
	announced map[string]int // the number of announced records by organization
	reg       *prometheus.Registry
}

// faulty is a store that cannot remove records of one organization. It is the leader if leads is
// set.
type faulty struct {
	storage.Store
	org   string
	leads func() bool
	ill   error
}

func (f *faulty) Leads() bool { return f.leads == nil || f.leads() }

func (f *faulty) Healthy(context.Context) error { return f.ill }

var errFault = errors.New("injected fault")

func (f *faulty) RemoveRecords(ctx context.Context, org string, before time.Time, most storage.Expired) (storage.Expired, error) {
	if f.org != "" && org == f.org {
		return storage.Expired{}, errFault
	}
	return f.Store.RemoveRecords(ctx, org, before, most)
}

// newWorld returns a world with three plans. The history of "free" is kept for a day, of "pro" for
// 30 days, of "ever" for ever. For any other organization the retention is unknown.
func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	w := &world{T: t, store: &faulty{Store: s}, writer: storagetest.NewWriter(), reg: prometheus.NewRegistry(), announced: make(map[string]int)}
	w.cfg = Config{
		Store: w.store,
		Announce: func(_ context.Context, org string, before time.Time, count storage.Expired) error {
			if n, err := s.CountExpired(t.Context(), org, before, count.Records+1); n != count || err != nil {
				t.Errorf("%+v records of %s before %v were announced, want %+v, %v", count, org, before, n, err)
			}
			w.announced[org] += count.Records
			return nil
		},
		Keep: func(_ context.Context, org string) (time.Duration, error) {
			keep, ok := map[string]time.Duration{"free": 24 * time.Hour, "pro": 30 * 24 * time.Hour, "ever": 0}[org]
			if !ok {
				return 0, fmt.Errorf("no plan of %s", org)
			}
			return keep, nil
		},
		Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Metrics: w.reg,
		Wait: func(ctx context.Context, d time.Duration) error {
			w.waits = append(w.waits, d)
			return ctx.Err()
		},
	}
	return w
}

func (w *world) sweeper() *Sweeper {
	w.Helper()
	s, err := New(w.cfg)
	if err != nil {
		w.Fatalf("New = %v", err)
	}
	return s
}

// commit stores n records of org. Their age at the present time is given.
func (w *world) commit(org string, n int, age time.Duration) {
	w.Helper()
	batch := make([]*storage.Record, n)
	for i := range batch {
		// The writer gives each record a new id. Only the time in this id is replaced.
		batch[i] = w.writer.Record(org)
		at := now.Add(-age).Add(time.Duration(i) * time.Microsecond)
		batch[i].DecidedAt = at
		batch[i].DecisionID = fmt.Sprintf("%012x", at.UnixMilli())[:8] + "-" + fmt.Sprintf("%012x", at.UnixMilli())[8:] + batch[i].DecisionID[13:]
		batch[i].Receipt.DecisionID = batch[i].DecisionID
	}
	if _, err := w.writer.Commit(w.Context(), w.store, batch...); err != nil {
		w.Fatalf("Commit = %v", err)
	}
}

func (w *world) want(org string, want int) {
	w.Helper()
	got, _, err := w.store.ListRecords(w.Context(), org, storage.Filter{}, storage.Page{Limit: 10_000})
	if err != nil || len(got) != want {
		w.Errorf("history of %s = %d records, %v, want %d", org, len(got), err, want)
	}
}

// TestSweeper_Forgets checks that a pass forgets intents of every organization in small writes, also where history is
// kept for ever, and that it goes on with the next organization after a failure.
func TestSweeper_Forgets(t *testing.T) {
	w := newWorld(t)
	left := map[string]int{"ever": 2*batch + 1, "free": batch, "pro": 3}
	for org := range left {
		w.commit(org, 1, time.Hour)
	}
	w.cfg.Forget = func(_ context.Context, org string, max int) (int, error) {
		if org == "free" && left[org] == 0 {
			return 0, errFault
		}
		n := min(max, left[org])
		left[org] -= n
		return n, nil
	}
	w.sweeper().pass(t.Context())
	if diff := cmp.Diff(map[string]int{"ever": 0, "free": 0, "pro": 0}, left); diff != "" {
		t.Errorf("left after a pass (-want +got):\n%s", diff)
	}
	if want := []time.Duration{pause, pause, pause}; !slices.Equal(w.waits, want) {
		t.Errorf("waits = %v, want %v", w.waits, want)
	}
	if n := w.counted("writ_retention_failures_total"); n != 1 {
		t.Errorf("%v failures, want 1", n)
	}
}

// counted returns the value of a counter.
func (w *world) counted(name string) float64 {
	w.Helper()
	m, ok := metricstest.Read(w, w.reg)[name]
	if !ok {
		w.Fatalf("there is no metric %s", name)
	}
	return m.Value
}

func TestDecision_Plans_RetentionRemovesWhatIsOlder(t *testing.T) {
	w := newWorld(t)
	for _, org := range []string{"free", "pro", "ever", "unknown"} {
		w.commit(org, 3, 400*24*time.Hour)
		w.commit(org, 2, 25*time.Hour)
		w.commit(org, 4, 23*time.Hour)
	}
	w.sweeper().pass(t.Context())
	w.want("free", 4)
	w.want("pro", 6)
	w.want("ever", 9)
	w.want("unknown", 9) // the retention is unknown, so nothing is removed
	if got := w.counted("writ_retention_removed_records_total"); got != 8 {
		t.Errorf("writ_retention_removed_records_total = %v, want 8", got)
	}
	if got := w.counted("writ_retention_failures_total"); got != 1 {
		t.Errorf("writ_retention_failures_total = %v, want 1", got)
	}
	for _, part := range []string{"records=8", "organizations=2", "failed=1", "no plan of unknown"} {
		if !strings.Contains(w.log.String(), part) {
			t.Errorf("log = %s, want it to say %s", w.log.String(), part)
		}
	}
	w.log.Reset()
	w.cfg.Keep = func(context.Context, string) (time.Duration, error) { return 0, nil }
	w.cfg.Metrics = nil
	w.sweeper().pass(t.Context())
	if w.log.Len() > 0 {
		t.Errorf("a pass that removed nothing logged %s", w.log.String())
	}
}

// TestSweeper_Sessions checks that the sweeper removes expired sessions of every organization, even
// if history is kept for ever or the retention is unknown.
func TestSweeper_Sessions(t *testing.T) {
	w := newWorld(t)
	var swept []string
	w.cfg.Sessions = func(_ context.Context, org string, at time.Time) (int, error) {
		if !at.Equal(now) {
			t.Errorf("sessions are swept at %v, want %v", at, now)
		}
		swept = append(swept, org)
		return 1, nil
	}
	for _, org := range []string{"ever", "free"} {
		w.commit(org, 1, time.Hour)
	}
	w.sweeper().pass(t.Context())
	slices.Sort(swept)
	if !slices.Equal(swept, []string{"ever", "free"}) {
		t.Errorf("sessions of %v were swept, want those of ever and free", swept)
	}
}

func TestSweeper_SmallWritesWithPauses(t *testing.T) {
	w := newWorld(t)
	w.commit("free", 2*batch+1, 48*time.Hour)
	w.commit("pro", batch, 48*time.Hour)
	w.sweeper().pass(t.Context())
	w.want("free", 0)
	if diff := cmp.Diff([]time.Duration{pause, pause}, w.waits); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

// TestSweeper_NothingIsRemovedUnannounced checks that records are announced before they are
// removed. If a crash happens in between, announced records still exist. But no record is removed
// without an announcement.
func TestSweeper_NothingIsRemovedUnannounced(t *testing.T) {
	w := newWorld(t)
	w.commit("free", batch+3, 48*time.Hour)
	announce := w.cfg.Announce
	w.cfg.Announce = func(context.Context, string, time.Time, storage.Expired) error { return errFault }
	w.sweeper().pass(t.Context())
	w.want("free", batch+3)
	w.cfg.Announce, w.cfg.Metrics, w.store.org = announce, nil, "free"
	w.sweeper().pass(t.Context())
	w.want("free", batch+3)
	w.store.org = ""
	w.sweeper().pass(t.Context())
	w.want("free", 0)
	if got, want := w.announced["free"], 2*(batch+3); got != want {
		t.Errorf("%d records were announced, want %d: once more after what failed", got, want)
	}
}

func TestSweeper_OneOrganizationThatFailsDoesNotKeepTheOthers(t *testing.T) {
	w := newWorld(t)
	w.commit("free", 2, 48*time.Hour)
	w.commit("pro", 2, 48*24*time.Hour)
	w.store.org = "free"
	s := w.sweeper()
	s.pass(t.Context())
	w.want("free", 2)
	w.want("pro", 0)
	w.store.org = ""
	s.pass(t.Context())
	w.want("free", 0)
}

// TestSweeper_NothingIsRemovedWhileNotHealthy checks that a leader whose store is not healthy removes nothing: its clock
// may be wrong.
func TestSweeper_NothingIsRemovedWhileNotHealthy(t *testing.T) {
	w := newWorld(t)
	w.commit("free", 2, 48*time.Hour)
	w.store.ill = errFault
	s := w.sweeper()
	s.pass(t.Context())
	w.want("free", 2)
	if n := w.counted("writ_retention_failures_total"); n != 1 || !strings.Contains(w.log.String(), errFault.Error()) {
		t.Errorf("%v failures, want 1, and the log says %s", n, w.log.String())
	}
	w.store.ill = nil
	s.pass(t.Context())
	w.want("free", 0)
}

func TestSweeper_RunStopsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.commit("free", 3*batch, 48*time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	passes := 0
	w.cfg.Wait = func(ctx context.Context, d time.Duration) error {
		if d == every {
			if passes++; passes == 3 {
				cancel()
			}
		}
		return ctx.Err()
	}
	w.sweeper().Run(ctx)
	if passes != 3 {
		t.Errorf("Run made %d passes, want 3", passes)
	}
	t.Run("in the middle of an organization", func(t *testing.T) {
		w := newWorld(t)
		w.commit("free", 3*batch, 48*time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		w.cfg.Wait = func(ctx context.Context, _ time.Duration) error {
			cancel()
			return ctx.Err()
		}
		w.sweeper().Run(ctx)
		w.want("free", 2*batch)
		if strings.Contains(w.log.String(), "level=ERROR") {
			t.Errorf("log = %s, want no error about a shutdown", w.log.String())
		}
	})
}

// TestSweeper_OnlyWhoLeads checks that only the leader sweeps. A new leader makes a pass at once. A
// handle that is no longer the leader ends its pass.
func TestSweeper_OnlyWhoLeads(t *testing.T) {
	w := newWorld(t)
	w.commit("free", 2, 48*time.Hour)
	w.commit("pro", 2, 48*24*time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	leads, asked := false, 0
	w.store.leads = func() bool {
		asked++
		return leads && asked < 6
	}
	var waits []time.Duration
	w.cfg.Wait = func(ctx context.Context, d time.Duration) error {
		switch waits = append(waits, d); len(waits) {
		case 3:
			w.want("free", 2)
			leads = true
		case 4:
			cancel()
		}
		return ctx.Err()
	}
	w.sweeper().Run(ctx)
	if diff := cmp.Diff([]time.Duration{look, look, look, every}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	w.want("pro", 0)
	w.want("free", 2)
	if got := w.counted("writ_retention_last_pass_timestamp_seconds"); got != 0 {
		t.Errorf("a pass that was not ended is told at %v", got)
	}
	if got := w.counted("writ_retention_failures_total"); got != 0 {
		t.Errorf("%v failures, want none", got)
	}
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	w := newWorld(t)
	for name, cfg := range map[string]Config{
		"no store": {Keep: w.cfg.Keep, Announce: w.cfg.Announce}, "no keep": {Store: w.store, Announce: w.cfg.Announce}, "no announce": {Store: w.store, Keep: w.cfg.Keep},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New with %s = nil, want an error", name)
		}
	}
	w.sweeper()
	if _, err := New(w.cfg); err == nil {
		t.Error("New with metrics that are registered = nil, want an error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("wait = %v, want %v", err, context.Canceled)
	}
	if err := wait(t.Context(), 1); err != nil {
		t.Errorf("wait = %v, want nil", err)
	}
}
