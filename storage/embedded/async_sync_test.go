package embedded

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

const testUnsynced = 3

// openAsync opens a store with WriteBehind. Up to testUnsynced commits may return before they are
// durable.
func openAsync(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	return openWith(t, Options{FS: fs, WriteBehind: testUnsynced})
}

// TestDecision_Audit_Queued_Contract checks that a store with WriteBehind keeps the whole contract
// of package storage.
func TestDecision_Audit_Queued_Contract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return openAsync(t, vfs.NewMem()) })
}

// TestDecision_Audit_Queued_ACrashLosesTheLastOnly checks that a crash of the machine loses at most
// the last testUnsynced batches. Every earlier batch must be complete. The chain and the meters
// must continue after the last kept batch.
func TestDecision_Audit_Queued_ACrashLosesTheLastOnly(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	lost := 0
	for round := range 12 {
		disk := vfs.NewCrashableMem()
		var slow atomic.Bool
		s := openAsync(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			for slow.Load() && isLogSync(op) { // simulates a slow disk
				time.Sleep(time.Millisecond)
			}
			return nil
		})))
		w := storagetest.NewWriter()
		var batches [][]*storage.Record
		commit := func(n int) {
			for range n {
				batch := []*storage.Record{w.Record("a"), w.Record("b"), w.Record("a")}
				commit(t, s, w, batch...)
				batches = append(batches, batch)
			}
		}
		commit(20 + round)
		if round%2 == 0 {
			rotate(t, s)
		}
		until(t, func() bool { return s.unsynced() == 0 })
		slow.Store(true)
		commit(testUnsynced)
		crashed := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(2) * rng.IntN(101), RNG: rng})
		slow.Store(false)
		kept := wantPrefix(t, crashed, batches)
		lost += len(batches) - kept
		closeTest(t, s)
		if kept := wantPrefix(t, disk.CrashClone(vfs.CrashCloneCfg{}), batches); kept != len(batches) {
			t.Errorf("after Close %d of %d batches are durable, want all", kept, len(batches))
		}
	}
	if lost == 0 {
		t.Error("no crash lost anything: the test tests nothing")
	}
}

func isLogSync(op errorfs.Op) bool { return isSync(op) && filepath.Ext(op.Path) == ".segment" }

// wantPrefix opens a store after a crash. The store must have the first batches without a gap, and
// no later batch. wantPrefix returns the number of these batches.
func wantPrefix(t *testing.T, fs vfs.FS, batches [][]*storage.Record) (kept int) {
	t.Helper()
	s := openTest(t, fs, nil)
	defer closeTest(t, s)
	missing := false
	for i, batch := range batches {
		found := 0
		for _, r := range batch {
			got, err := s.Record(t.Context(), r.OrganizationID, r.DecisionID)
			if err == nil && got.Receipt == r.Receipt {
				found++
			} else if !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Record = %+v, %v, want %+v or none", got, err, r)
			}
		}
		switch {
		case found == 0:
			missing = true
		case found < len(batch):
			t.Errorf("batch %d is half there: %d of %d records", i, found, len(batch))
		case missing:
			t.Errorf("batch %d is there, and an earlier one is not", i)
		default:
			kept++
		}
	}
	if kept < len(batches)-testUnsynced {
		t.Errorf("%d of %d batches are left, want at most %d lost", kept, len(batches), testUnsynced)
	}
	head, err := s.lastHead()
	if err != nil || head.Seq != uint64(kept) {
		t.Errorf("the last head is %d, %v, want that of batch %d", head.Seq, err, kept)
	}
	for org, each := range map[string]int64{"a": 2, "b": 1} {
		if n, err := s.Metered(t.Context(), org, 202611); n != each*int64(kept) || err != nil {
			t.Errorf("Metered(%s) = %d, %v, want %d for %d batches", org, n, err, each*int64(kept), kept)
		}
	}
	return kept
}

// TestDecision_Audit_Queued_BlocksWhenFullAndDropsNothing checks that commits wait while the disk
// does not sync. Once the disk syncs again, all waiting commits must become durable.
func TestDecision_Audit_Queued_BlocksWhenFullAndDropsNothing(t *testing.T) {
	disk := vfs.NewCrashableMem()
	release := make(chan struct{})
	var stuck atomic.Bool
	s := openAsync(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if stuck.Load() && isLogSync(op) {
			<-release
		}
		return nil
	})))
	stuck.Store(true)
	w := storagetest.NewWriter()
	var returned atomic.Int64
	done := make(chan struct{})
	batches := make([][]*storage.Record, 3*testUnsynced)
	go func() {
		defer close(done)
		for i := range batches {
			batches[i] = []*storage.Record{w.Record("a"), w.Record("b"), w.Record("a")}
			if _, err := w.Commit(t.Context(), s, batches[i]...); err != nil {
				t.Errorf("Commit = %v", err)
			}
			returned.Add(1)
		}
	}()
	until(t, func() bool { return returned.Load() == testUnsynced })
	select { // a commit that does not wait returns here
	case <-done:
	case <-time.After(20 * time.Millisecond):
	}
	if n := returned.Load(); n != testUnsynced || s.unsynced() != testUnsynced {
		t.Errorf("%d commits returned with %d not durable, want %d", n, s.unsynced(), testUnsynced)
	}
	stuck.Store(false)
	close(release)
	<-done
	until(t, func() bool { return s.unsynced() == 0 })
	if kept := wantPrefix(t, disk.CrashClone(vfs.CrashCloneCfg{}), batches); kept != len(batches) {
		t.Errorf("%d of %d batches are durable, want all", kept, len(batches))
	}
}

// TestDecision_Audit_Queued_AFailedSyncRefusesAllAfter checks that no commit succeeds after a
// failed sync. Earlier commits may be lost.
func TestDecision_Audit_Queued_AFailedSyncRefusesAllAfter(t *testing.T) {
	disk := vfs.NewCrashableMem()
	var broken atomic.Bool
	s := openAsync(t, failing(disk, func(op errorfs.Op) bool {
		return broken.Load() && isLogSync(op)
	}))
	w := storagetest.NewWriter()
	var batches [][]*storage.Record
	for i := range 10 {
		broken.Store(i >= 5)
		batch := []*storage.Record{w.Record("a"), w.Record("b"), w.Record("a")}
		if _, err := w.Commit(t.Context(), s, batch...); err != nil {
			break
		}
		batches = append(batches, batch)
		if i < 5 {
			until(t, func() bool { return s.unsynced() == 0 })
		}
	}
	until(t, func() bool { return s.health.Stopped() != nil && s.unsynced() == 0 })
	wantStopped(t, s, w)
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	if kept := wantPrefix(t, crashed, batches); kept < 5 {
		t.Errorf("%d batches are left, want the 5 that were durable", kept)
	}
}
