package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// faults injects errors into matching writes and listings, from the n-th on.
type faults struct {
	match  func(errorfs.Op) bool
	once   bool
	left   atomic.Int64 // number of writes before the first error
	struck atomic.Bool
}

var errDisk = fmt.Errorf("injected: %w", syscall.EIO)

func (f *faults) inject(op errorfs.Op) error {
	writes := op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && op.Kind != errorfs.OpLock
	if !writes && op.Kind != errorfs.OpList || !f.match(op) {
		return nil
	}
	n := f.left.Add(-1)
	if n > 0 || f.once && n < 0 {
		return nil
	}
	f.struck.Store(true)
	return errDisk
}

// faultyFiles has the kinds of files in which faults can occur.
var faultyFiles = map[string]func(errorfs.Op) bool{
	"any file":         func(errorfs.Op) bool { return true },
	"the log":          func(op errorfs.Op) bool { return filepath.Ext(op.Path) == ".log" },
	"segments":         func(op errorfs.Op) bool { return filepath.Ext(op.Path) == ".segment" },
	"tables":           func(op errorfs.Op) bool { return filepath.Ext(op.Path) == ".sst" },
	"syncs of the log": func(op errorfs.Op) bool { return isSync(op) && filepath.Ext(op.Path) == ".log" },
	"the manifest": func(op errorfs.Op) bool {
		ok, err := filepath.Match("*MANIFEST*", filepath.Base(op.Path))
		return ok || err != nil
	},
	"directories": func(op errorfs.Op) bool { return filepath.Base(op.Path) == "data" },
}

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

// TestFault_NothingAcknowledgedIsLost commits until the disk fails at the n-th write, for some n.
// Flushes in between replace logs and manifests. After the failure every commit must be refused.
// Then the test opens two directories: the directory on the failing disk, and the directory after a
// crash of the machine. Each must have all acknowledged records, and no incomplete batch.
func TestFault_NothingAcknowledgedIsLost(t *testing.T) { runFaults(t, 2, 14, 85) }

// runFaults runs the test for each kind of fault, at each of the given writes.
func runFaults(t *testing.T, writes ...int64) {
	compactions := int64(0)
	for name, match := range faultyFiles {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, once=%t", name, once), func(t *testing.T) {
				struck := 0
				for _, n := range writes {
					f := &faults{match: match, once: once}
					f.left.Store(n)
					compactions += runFault(t, f)
					if f.struck.Load() {
						struck++
					}
				}
				if struck == 0 {
					t.Error("no fault ever struck: the test tests nothing")
				}
			})
		}
	}
	if compactions == 0 {
		t.Error("no compaction ever ended: the test leaves them out")
	}
}

// runFault runs the test for one fault. It returns the number of finished compactions.
func runFault(t *testing.T, f *faults) (compactions int64) {
	t.Helper()
	disk := vfs.NewCrashableMem()
	var armed atomic.Bool
	faulty := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !armed.Load() {
			return nil
		}
		return f.inject(op)
	}))
	log := new(logged)
	s := openTest(t, faulty, log)
	armed.Store(true)
	w := storagetest.NewWriter()
	var acknowledged []*storage.Record
	for i := range 20 {
		batch := []*storage.Record{w.Record("a"), w.Record("b"), w.Record("a")}
		if _, err := w.Commit(t.Context(), s, batch...); err != nil {
			break
		}
		acknowledged = append(acknowledged, batch...)
		if putLarge(t, s, i) != nil {
			break
		}
		if i%2 == 1 && s.health.writable() == nil { // these flushes cause a compaction
			rotate(t, s)
		}
	}
	if s.health.Stopped() != nil {
		wantStopped(t, s, w)
		until(t, func() bool { return log.errors() > 0 })
		if n := log.errors(); n > 3 { // at most three: a flush and a compaction may fail before the log
			t.Errorf("the failure was logged %d times:\n%s", n, log.buf.String())
		}
	}
	compactions = s.db.Metrics().Compact.Count
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	armed.Store(false)
	closeTest(t, s)
	for what, fs := range map[string]vfs.FS{"closed": disk, "crashed": crashed} {
		wantAcknowledged(t, what, fs, w, acknowledged)
	}
	return compactions
}

// putLarge stores a large document.
func putLarge(t *testing.T, s *Store, n int) error {
	t.Helper()
	return registry.New(s).PutRule(t.Context(), "a", &engine.Rule{ID: fmt.Sprintf("large-%d", n), Description: strings.Repeat("x", 300)}, 0)
}

// rotate moves the tail to Pebble and flushes Pebble. Pebble then begins a new log. rotate ignores
// errors of the disk.
func rotate(t *testing.T, s *Store) {
	t.Helper()
	if err := s.keepNow(); err != nil && s.health.writable() == nil && !errors.Is(err, errDisk) {
		t.Fatalf("flush = %v", err)
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		t.Fatalf("AsyncFlush = %v", err)
	}
	for {
		select {
		case <-flushed:
			return
		default:
			if s.health.writable() != nil {
				return
			}
			runtime.Gosched()
		}
	}
}

// wantStopped checks that all methods of a stopped store return errors.
func wantStopped(t *testing.T, s *Store, w *storagetest.Writer) {
	t.Helper()
	ctx := t.Context()
	if err := s.Healthy(ctx); err == nil {
		t.Error("Healthy of a stopped store = nil, want an error")
	}
	_, commitErr := w.Commit(ctx, s, w.Record("a"))
	_, policyErr := registry.New(s).PutPolicy(ctx, &engine.ActionPolicy{OrganizationID: "a", PolicyID: "p", Version: 1}, 0)
	_, readErr := registry.New(s).Policy(ctx, "a", "p")
	_, _, listErr := s.ListRecords(ctx, "a", storage.Filter{}, storage.Page{Limit: 1})
	_, headErr := s.Tip(ctx)
	_, meterErr := s.Metered(ctx, "a", 202611)
	for what, err := range map[string]error{
		"Commit": commitErr, "PutPolicy": policyErr, "Policy": readErr, "ListRecords": listErr,
		"Tip": headErr, "Metered": meterErr,
	} {
		if err == nil || errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrConflict) {
			t.Errorf("%s of a stopped store = %v, want the reason", what, err)
		}
	}
}

// wantAcknowledged opens the store in fs. The store must have all acknowledged records.
func wantAcknowledged(t *testing.T, what string, fs vfs.FS, w *storagetest.Writer, acknowledged []*storage.Record) {
	t.Helper()
	s, err := openQuietly(Options{FS: fs})
	if err != nil {
		t.Errorf("%s: Open = %v", what, err)
		return
	}
	defer closeTest(t, s)
	for _, r := range acknowledged {
		got, err := s.Record(t.Context(), r.OrganizationID, r.DecisionID)
		if err != nil || got.Receipt != r.Receipt {
			t.Errorf("%s: Record(%s) = %+v, %v; want the acknowledged one", what, r.DecisionID, got, err)
		}
		got, err = s.Decided(t.Context(), r.OrganizationID, r.IntentID, r.ApprovalID)
		if err != nil || got.DecisionID != r.DecisionID {
			t.Errorf("%s: Decided = %+v, %v; want decision %s", what, got, err, r.DecisionID)
		}
	}
	fresh := w.Record("a")
	if _, err := w.Commit(t.Context(), s, fresh); err != nil {
		t.Errorf("%s: Commit = %v, want nil", what, err)
	}
	storagetest.Check(t, s, w.Keys(t), "a", "b")
}

// TestFault_Opening makes the flush of Pebble's log fail during Open. Open must return an error and
// lose no data.
func TestFault_Opening(t *testing.T) {
	for _, name := range []string{"tables", "the manifest"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewCrashableMem()
			w := storagetest.NewWriter()
			s := openTest(t, disk, nil)
			acknowledged := []*storage.Record{w.Record("a"), w.Record("b")}
			commit(t, s, w, acknowledged...)
			must(t, putLarge(t, s, 1))
			crashed := disk.CrashClone(vfs.CrashCloneCfg{})
			var struck atomic.Bool
			faulty := errorfs.Wrap(crashed, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && faultyFiles[name](op) {
					struck.Store(true)
					return errDisk
				}
				return nil
			}))
			if s, err := openQuietly(Options{FS: faulty}); err == nil {
				closeTest(t, s)
				t.Error("Open on a failing disk = nil, want an error")
			}
			if !struck.Load() {
				t.Error("no fault struck: the test tests nothing")
			}
			wantAcknowledged(t, "opened again", crashed.CrashClone(vfs.CrashCloneCfg{}), w, acknowledged)
		})
	}
}

// TestFault_OpeningToCompact makes the disk fail once during Open. Meanwhile Pebble's log is
// flushed and a compaction is due. Open may succeed or return an error, but no data may be lost.
func TestFault_OpeningToCompact(t *testing.T) {
	k, refused := kill(t, false, false), 0
	for n := range int64(16) {
		disk := k.disk.CrashClone(vfs.CrashCloneCfg{})
		var writtenOut atomic.Bool
		f := &faults{once: true, match: func(op errorfs.Op) bool {
			return writtenOut.Load() || op.Kind == errorfs.OpCreate && faultyFiles["the log"](op) && writtenOut.CompareAndSwap(false, true)
		}}
		f.left.Store(n + 1)
		s, err := openQuietly(Options{FS: errorfs.Wrap(disk, errorfs.InjectorFunc(f.inject))})
		if err == nil {
			closeTest(t, s)
		} else if refused++; !strings.Contains(err.Error(), errDisk.Error()) {
			t.Errorf("write %d fails: Open = %v, want the injected error", n+1, err)
		}
		if !f.struck.Load() {
			t.Errorf("there is no write %d: the test tests nothing", n+1)
		}
		again := openTest(t, disk, nil)
		if diff := cmp.Diff(k.want, look(t, again)); diff != "" {
			t.Errorf("write %d fails: opened again: -noted +got\n%s", n+1, diff)
		}
		closeTest(t, again)
	}
	if refused == 0 {
		t.Error("no opening was refused: the test leaves that out")
	}
}

// TestFault_FlushThatRecovers checks that commits are refused while Pebble's flushes fail. Commits
// are accepted again once a flush succeeds.
func TestFault_FlushThatRecovers(t *testing.T) {
	var broken atomic.Bool
	fs := failing(vfs.NewMem(), func(op errorfs.Op) bool {
		return broken.Load() && op.Kind == errorfs.OpCreate && filepath.Ext(op.Path) == ".sst"
	})
	log := new(logged)
	s := openTest(t, fs, log)
	w := storagetest.NewWriter()
	commit(t, s, w, w.Record("a"))
	must(t, putLarge(t, s, 1))
	broken.Store(true)
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		t.Fatalf("AsyncFlush = %v", err)
	}
	until(t, func() bool { return s.Healthy(t.Context()) != nil })
	if _, err := w.Commit(t.Context(), s, w.Record("a")); !errors.Is(err, errDisk) {
		t.Errorf("Commit while flushes fail = %v, want the injected error", err)
	}
	if _, err := s.Tip(t.Context()); err != nil {
		t.Errorf("Tip while flushes fail = %v, want nil", err)
	}
	broken.Store(false)
	<-flushed
	until(t, func() bool { return s.Healthy(t.Context()) == nil })
	if _, err := w.Commit(t.Context(), s, w.Record("a")); err != nil {
		t.Errorf("Commit after a flush has worked = %v, want nil", err)
	}
	if n := log.errors(); n != 1 {
		t.Errorf("the failure was logged %d times, want once:\n%s", n, log.buf.String())
	}
	storagetest.Check(t, s, w.Keys(t), "a")
}

// until waits until done returns true.
func until(t testing.TB, done func() bool) {
	t.Helper()
	for !done() {
		if t.Context().Err() != nil {
			t.Fatal("the test ended first")
		}
		runtime.Gosched()
	}
}

// TestFault_ReadError checks that a failed read returns an error and is never treated as missing
// data. Healthy returns the error until a read succeeds.
func TestFault_ReadError(t *testing.T) {
	var broken atomic.Bool
	fs := failing(vfs.NewMem(), func(op errorfs.Op) bool {
		return broken.Load() && op.Kind == errorfs.OpFileReadAt
	})
	w := storagetest.NewWriter()
	var records []*storage.Record
	s := openTest(t, fs, nil)
	for range 100 { // some frames are in memory, so the store needs many
		records = append(records, w.Record("a"))
		commit(t, s, w, records[len(records)-1])
	}
	closeTest(t, s)
	log := new(logged)
	s = openTest(t, fs, log)
	waitFilled(t, s) // ends background reads, which the test would count
	broken.Store(true)
	again := w.Again(records[50])
	if existing, err := w.Commit(context.Background(), s, again); !errors.Is(err, errDisk) {
		t.Errorf("Commit of a known intent that can't be read = %v, %v; want the injected error", existing, err)
	}
	if err := s.Healthy(t.Context()); !errors.Is(err, errDisk) {
		t.Errorf("Healthy = %v, want the injected error", err)
	}
	broken.Store(false)
	storagetest.Check(t, s, w.Keys(t), "a")
	if err := s.Healthy(t.Context()); err != nil {
		t.Errorf("Healthy after a read = %v, want nil", err)
	}
	if n := log.errors(); n != 1 {
		t.Errorf("the failure was logged %d times, want once:\n%s", n, log.buf.String())
	}
}
