package embedded

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestSnapshot_HasWhatTheStoreHad makes snapshots of a store that goes on. Each must open with what the store had, and
// must keep it while the store writes and removes.
func TestSnapshot_HasWhatTheStoreHad(t *testing.T) {
	fs := vfs.NewMem()
	w := storagetest.NewWriter()
	s := openTest(t, fs, nil)
	for run := range int64(4) {
		fill(t, s, w, 2*run+1)
		if run%2 == 1 {
			rotate(t, s)
		}
		want := look(t, s)
		copied := vfs.NewMem()
		must(t, s.Snapshot(t.Context(), func(_ context.Context, dir string, at Snapshot) error {
			fill(t, s, w, 2*run+2)
			if _, err := vfs.Clone(fs, copied, dir, "data"); err != nil {
				return err
			}
			return replaceFile(copied, tipName("data"), at.Text)
		}))
		restored := openTest(t, copied, nil)
		if diff := cmp.Diff(want, look(t, restored)); diff != "" {
			t.Errorf("run %d: -before +snapshot\n%s", run, diff)
		}
		closeTest(t, restored)
		if names, err := fs.List(""); err != nil || len(names) > 3 {
			t.Errorf("left beside the store: %q, %v", names, err)
		}
	}
	closeTest(t, s)
}

// TestSnapshot_DuringCommits makes snapshots while decisions are committed. Each must open without a loss, end at the
// head that it names, and have every record that was acknowledged before it.
func TestSnapshot_DuringCommits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	w := storagetest.NewWriter()
	s, err := Open(dir, Options{Log: slog.New(slog.DiscardHandler), MinFreeBytes: 1, segmentSize: 64 << 10})
	must(t, err)
	t.Cleanup(func() { closeTest(t, s) })
	acknowledged, stop := make(chan *storage.Record, 10_000), make(chan struct{})
	var committing sync.WaitGroup
	committing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			r := w.Record("a")
			if _, err := w.Commit(t.Context(), s, r); err != nil {
				t.Errorf("Commit = %v", err)
				return
			}
			select {
			case acknowledged <- r:
			case <-stop:
				return
			}
		}
	})
	var before []*storage.Record
	for run := range 6 {
		for range 50 {
			before = append(before, <-acknowledged)
		}
		to := filepath.Join(t.TempDir(), "data")
		var at Snapshot
		must(t, s.Snapshot(t.Context(), func(_ context.Context, dir string, taken Snapshot) error {
			at = taken
			return errors.Join(os.CopyFS(to, os.DirFS(dir)), os.WriteFile(to+".tip", taken.Text, 0o600))
		}))
		copied, err := Open(to, Options{Log: slog.New(slog.DiscardHandler), MinFreeBytes: 1})
		must(t, err)
		if tip, err := copied.Tip(t.Context()); err != nil || tip.Seq != at.Head || tip.Prev != at.Hash {
			t.Errorf("run %d: Tip() = head %d, %v, want head %d", run, tip.Seq, err, at.Head)
		}
		for _, r := range before {
			if _, err := copied.Decided(t.Context(), "a", r.IntentID, r.ApprovalID); err != nil {
				t.Errorf("run %d: Decided(%s) = %v", run, r.IntentID, err)
			}
		}
		must(t, copied.Close())
	}
	close(stop)
	committing.Wait()
}

// TestSnapshot_EndsWithTheStore checks that Close ends a snapshot that is used, and that no later one begins.
func TestSnapshot_EndsWithTheStore(t *testing.T) {
	s, err := openQuietly(Options{FS: vfs.NewMem()})
	must(t, err)
	closed := make(chan error, 1)
	err = s.Snapshot(t.Context(), func(ctx context.Context, _ string, _ Snapshot) error {
		go func() { closed <- s.Close() }()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Snapshot = %v, want that it was ended", err)
	}
	must(t, <-closed)
	if err := s.Snapshot(t.Context(), nil); !errors.Is(err, errClosing) {
		t.Errorf("Snapshot of a closed store = %v, want %v", err, errClosing)
	}
}
