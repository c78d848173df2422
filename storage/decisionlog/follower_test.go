package decisionlog_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// world is a store with one handle and a sink that a test can break.
type world struct {
	*testing.T
	memory *storagetest.Memory
	store  *storagetest.Handle
	writer *storagetest.Writer
	all    []string // ids of the committed decisions
}

func newWorld(t *testing.T) *world {
	m := storagetest.NewMemory()
	return &world{T: t, memory: m, store: m.Open(), writer: storagetest.NewWriter()}
}

// commit commits n batches of two records.
func (w *world) commit(n int) {
	for range n {
		w.batch(2)
	}
}

// batch commits a batch of n records of two organizations.
func (w *world) batch(n int) {
	w.Helper()
	var all []*storage.Record
	for i := range n {
		all = append(all, w.writer.Record([]string{"org", "other"}[i%2]))
		w.all = append(w.all, all[i].DecisionID)
	}
	if _, err := w.writer.Commit(w.Context(), w.store, all...); err != nil {
		w.Fatal(err)
	}
}

// run follows the history of a store until stop is called.
func (w *world) run(sink decisionlog.Sink, reg prometheus.Registerer) (stop func()) {
	w.Helper()
	return w.runIf(sink, reg, nil)
}

// runIf is run with a function that says whether the sink wants rows.
func (w *world) runIf(
	sink decisionlog.Sink, reg prometheus.Registerer, wanted func(context.Context) (bool, error),
) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	f, err := decisionlog.Open(ctx, decisionlog.Config{
		History: w.store, Positions: registry.New(w.store), Sink: sink, Name: "test", Metrics: reg, Wanted: wanted,
	})
	if err != nil {
		w.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	return sync.OnceFunc(func() { cancel(); <-done })
}

// memorySink keeps the ids of the rows that it got. While err is set, it fails.
type memorySink struct {
	mu  sync.Mutex
	ids []string
	err error
	got chan struct{} // has a value after a Send
}

func newSink() *memorySink { return &memorySink{got: make(chan struct{}, 1)} }

func (s *memorySink) Send(_ context.Context, rows []decisionlog.Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		select {
		case s.got <- struct{}{}:
		default:
		}
	}()
	for _, r := range rows {
		s.ids = append(s.ids, r.Record.DecisionID)
	}
	return s.err
}

func (s *memorySink) Close() error { return nil }

func (s *memorySink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// await waits until the sink has seen n rows, and returns them.
func (s *memorySink) await(t *testing.T, n int) []string {
	t.Helper()
	for {
		s.mu.Lock()
		ids := slices.Clone(s.ids)
		s.mu.Unlock()
		if len(ids) >= n {
			return ids
		}
		select {
		case <-s.got:
		case <-time.After(30 * time.Second):
			t.Fatalf("the sink has %d rows, want %d", len(ids), n)
		}
	}
}

func wantIDs(t *testing.T, what string, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// firsts returns ids without repetitions.
func firsts(ids []string) (all []string) {
	seen := make(map[string]bool)
	for _, id := range ids {
		if !seen[id] {
			all = append(all, id)
		}
		seen[id] = true
	}
	return all
}

func TestFollower_SendsWhatFollowsItsFirstStart(t *testing.T) {
	w, sink := newWorld(t), newSink()
	w.commit(3)
	w.all = nil
	stop := w.run(sink, nil)
	for range 4 {
		w.batch(350)
	}
	sink.await(t, 1400)
	stop()
	wantIDs(t, "rows", sink.ids, w.all)

	w.commit(2) // while the sink is not followed
	stop = w.run(sink, nil)
	w.commit(1)
	sink.await(t, 1406)
	stop()
	wantIDs(t, "rows after a second start", sink.ids, w.all)
}

func TestFollower_CatchesUpWithASinkThatWasDown(t *testing.T) {
	w, sink, reg := newWorld(t), newSink(), prometheus.NewRegistry()
	sink.fail(errors.New("down"))
	defer w.run(sink, reg)()
	w.commit(3)
	sink.await(t, 1)
	await(t, reg, "writ_decision_log_rows_behind", func(v float64) bool { return v == 6 })
	await(t, reg, "writ_decision_log_lag_seconds", func(v float64) bool { return v > 0 })
	await(t, reg, "writ_decision_log_sent_total", func(v float64) bool { return v == 0 })
	sink.fail(nil)
	await(t, reg, "writ_decision_log_rows_behind", func(v float64) bool { return v == 0 })
	await(t, reg, "writ_decision_log_lag_seconds", func(v float64) bool { return v == 0 })
	await(t, reg, "writ_decision_log_sent_total", func(v float64) bool { return v == 6 })
	wantIDs(t, "rows by first appearance", firsts(sink.await(t, 6)), w.all)
}

func TestFollower_CountsWhatRetentionRemovedUnsent(t *testing.T) {
	w, sink, reg := newWorld(t), newSink(), prometheus.NewRegistry()
	w.run(sink, nil)() // the store knows the sink from now on
	w.commit(2)
	if err := w.memory.Log().Bury("org"); err != nil {
		t.Fatal(err)
	}
	stop := w.run(sink, reg)
	await(t, reg, "writ_decision_log_removed_total", func(v float64) bool { return v == 1 })
	sink.await(t, 3)
	stop()
	wantIDs(t, "rows", sink.ids, w.all[1:])
}

func TestFollower_PassesOverWhatIsNotWanted(t *testing.T) {
	w, sink := newWorld(t), newSink()
	asked := make(chan bool)
	stop := w.runIf(sink, nil, func(ctx context.Context) (bool, error) {
		select {
		case wanted := <-asked:
			return wanted, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	})
	w.commit(2)
	asked <- false
	w.commit(1)
	asked <- false
	w.all = nil
	w.commit(2)
	asked <- true
	sink.await(t, 4)
	stop()
	wantIDs(t, "rows", sink.ids, w.all)
}

// TestFollower_StoreThatLostHeads begins after the end of the chain, as when a store was opened with less
// than it had. Later rows get the lost sequences, and must be sent.
func TestFollower_StoreThatLostHeads(t *testing.T) {
	w, sink := newWorld(t), newSink()
	w.commit(3)
	w.run(newSink(), nil)() // the store knows the sink from now on
	tip, err := w.store.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.New(w.store).Confirm(t.Context(), "test", tip.ID, tip.Seq+100); err != nil {
		t.Fatal(err)
	}
	w.all = nil
	stop := w.run(sink, nil)
	w.commit(1)
	sink.await(t, 2)
	stop()
	wantIDs(t, "rows", sink.ids, w.all)
	if at, err := registry.New(w.store).Confirmed(t.Context(), "test", tip.ID); at != tip.Seq+1 || err != nil {
		t.Errorf("Confirmed = %d, %v, want %d", at, err, tip.Seq+1)
	}
}

// await waits until a metric has a value.
func await(t *testing.T, reg *prometheus.Registry, name string, is func(float64) bool) {
	t.Helper()
	var last float64
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == name {
				if last = f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue(); is(last) {
					return
				}
			}
		}
	}
	t.Fatalf("%s stays %v", name, last)
}

func rows(texts ...string) (all []decisionlog.Row) {
	for _, text := range texts {
		all = append(all, decisionlog.Row{Record: &storage.Record{}, JSON: []byte(text)})
	}
	return all
}

func openFile(t *testing.T, path string) *decisionlog.File {
	t.Helper()
	f, err := decisionlog.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func send(t *testing.T, f decisionlog.Sink, texts ...string) {
	t.Helper()
	if err := f.Send(t.Context(), rows(texts...)); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s = %q, %v, want %q", filepath.Base(path), got, err, want)
	}
}

func TestFile_IsReopenedWhenRenamedOrRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	f := openFile(t, path)
	send(t, f, `{"a":1}`, `{"a":2}`)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	send(t, f, `{"a":3}`)
	wantFile(t, path+".1", "{\"a\":1}\n{\"a\":2}\n")
	wantFile(t, path, "{\"a\":3}\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	send(t, f, `{"a":4}`)
	wantFile(t, path, "{\"a\":4}\n")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("Stat = %v, %v, want a file that its owner alone can read", info, err)
	}
}

func TestFile_CutsAnUnfinishedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	long := bytes.Repeat([]byte("x"), 200_000)
	for _, c := range []struct{ there, want string }{
		{"", ""}, {"{}\n", "{}\n"}, {"{}\n{\"a\"", "{}\n"}, {string(long), ""}, {"{}\n" + string(long), "{}\n"},
	} {
		if err := os.WriteFile(path, []byte(c.there), 0o600); err != nil {
			t.Fatal(err)
		}
		f := openFile(t, path)
		send(t, f, `{"b":1}`)
		wantFile(t, path, c.want+"{\"b\":1}\n")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFile_RefusesWhatItCannotWriteTo(t *testing.T) {
	dir := t.TempDir()
	open := openFile(t, filepath.Join(dir, "open"))
	send(t, open, "{}")
	for _, path := range []string{filepath.Join(dir, "open"), dir, filepath.Join(dir, "none", "rows"), os.DevNull} {
		if f, err := decisionlog.OpenFile(path); err == nil {
			t.Errorf("OpenFile(%q) = %v, nil, want an error", path, f)
		}
	}
}

func TestStream_WaitsForItsReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := decisionlog.NewStream(w)
	send(t, s, "{}")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	big := string(bytes.Repeat([]byte("x"), 1<<20)) // longer than a pipe keeps
	if err := s.Send(ctx, rows(big)); !errors.Is(err, context.Canceled) {
		t.Errorf("Send = %v, want %v", err, context.Canceled)
	}
	if err := s.Send(t.Context(), rows("{}")); err == nil {
		t.Error("Send while an earlier one is under way = nil, want an error")
	}
}
