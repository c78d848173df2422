package embedded

import (
	"errors"
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"writ/storage"
	"writ/storage/storagetest"
)

// TestGuardBlob_KnowsTheLastWrite: a Pebble whose files of values end otherwise
// needs another guard.
func TestGuardBlob_KnowsTheLastWrite(t *testing.T) {
	disk := vfs.NewMem()
	s := openTest(t, disk, nil)
	if err := errors.Join(putLarge(t, s, 1), s.db.Flush()); err != nil {
		t.Fatalf("Flush = %v", err)
	}
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		if filepath.Ext(name) != blobExt {
			continue
		}
		found++
		f, err := disk.Open(disk.PathJoin("data", name))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err != nil || len(content) < len(blobMagic) || string(content[len(content)-len(blobMagic):]) != blobMagic {
			t.Errorf("%s has %d bytes, %v, and does not end with blobMagic", name, len(content), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if found == 0 {
		t.Errorf("no file of values among %q", names)
	}
}

// TestFault_Opening: opening writes out what the log holds. If that fails, Open
// does, and nothing is lost.
func TestFault_Opening(t *testing.T) {
	for _, name := range []string{"values", "syncs of values", "tables", "the manifest"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := vfs.NewCrashableMem()
			w := storagetest.NewWriter()
			s := openTest(t, disk, nil)
			acknowledged := []*storage.Record{w.Record("a"), w.Record("b")}
			if _, err := w.Commit(t.Context(), s, acknowledged...); err != nil {
				t.Fatalf("Commit = %v", err)
			}
			if err := putLarge(t, s, 1); err != nil {
				t.Fatalf("putLarge = %v", err)
			}
			crashed := disk.CrashClone(vfs.CrashCloneCfg{})
			var struck atomic.Bool
			faulty := errorfs.Wrap(crashed, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && faultyFiles[name](op) {
					struck.Store(true)
					return errDisk
				}
				return nil
			}))
			if s, err := Open("data", Options{FS: faulty, Log: (*logged)(nil).logger()}); err == nil {
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
