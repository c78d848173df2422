package embedded

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// filesOf returns the names of the files in the store's directory with the extension ext.
func filesOf(t *testing.T, disk vfs.FS, ext string) (found []string) {
	t.Helper()
	if found = anyFilesOf(t, disk, ext); len(found) == 0 {
		t.Fatalf("there is no %s", ext)
	}
	return found
}

// anyFilesOf is filesOf of a directory that may have none.
func anyFilesOf(t *testing.T, disk vfs.FS, ext string) (found []string) {
	t.Helper()
	names, err := disk.List("data")
	must(t, err)
	for _, name := range names {
		if filepath.Ext(name) == ext {
			found = append(found, disk.PathJoin("data", name))
		}
	}
	slices.Sort(found)
	return found
}

func content(t *testing.T, disk vfs.FS, name string) []byte {
	t.Helper()
	b, err := readAll(disk, name)
	must(t, err)
	return b
}

// damage replaces a file's content by change(content).
func damage(t *testing.T, disk vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	old := content(t, disk, name)
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write(change(old))
	must(t, errors.Join(err, f.Sync(), f.Close()))
}

// asCrashed makes a closed directory look as after a crash.
func asCrashed(t *testing.T, disk vfs.FS) {
	t.Helper()
	must(t, disk.Remove(disk.PathJoin("data", shutdownManifest)))
}

// TestDamage_AfterClose checks that Open returns an error if a directory has lost data since it was
// closed. Open must not change the directory. Pebble alone would accept the loss as the effect of a
// crash.
func TestDamage_AfterClose(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s := openTest(t, disk, nil)
	w := storagetest.NewWriter()
	for range 3 {
		commit(t, s, w, w.Record("a"))
		must(t, errors.Join(putLarge(t, s, 1), s.keepNow(), s.db.Flush()))
	}
	commit(t, s, w, w.Record("a"))
	closeTest(t, s)
	manifest := disk.PathJoin("data", "MANIFEST-000001")
	summed := append(filesOf(t, disk, ".log"), manifest)
	for _, file := range slices.Concat(summed, filesOf(t, disk, ".sst"), filesOf(t, disk, ".segment")) {
		wantRefused(t, disk, file, "cut short", func(b []byte) []byte { return b[:max(len(b)-1, 0)] })
		wantRefused(t, disk, file, "empty", func([]byte) []byte { return nil })
	}
	for _, file := range summed {
		wantRefused(t, disk, file, "a bit turned", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	}
	storagetest.Check(t, openTest(t, disk, nil), w.Keys(t), "a")
}

func wantRefused(t *testing.T, disk *vfs.MemFS, file, what string, change func([]byte) []byte) {
	t.Helper()
	damaged := disk.CrashClone(vfs.CrashCloneCfg{})
	damage(t, damaged, file, change)
	for range 2 {
		if s, err := openQuietly(Options{FS: damaged}); !errors.Is(err, errDamaged) {
			t.Errorf("Open with %s %s = %v, %v, want errDamaged", file, what, s, err)
		}
	}
}

// TestDamage_LogAfterACrash checks that Open reports damage before the last frames of a segment. It
// must not treat the damage as the end of the log.
func TestDamage_LogAfterACrash(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s := openTest(t, disk, nil)
	w := storagetest.NewWriter()
	for range 100 {
		commit(t, s, w, w.Record("a"))
	}
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	found := false
	for _, name := range filesOf(t, crashed, ".segment") {
		size := len(content(t, crashed, name))
		for at := 1000; at < size-5000; at += 2000 {
			found = true
			damaged := crashed.CrashClone(vfs.CrashCloneCfg{})
			damage(t, damaged, name, func(b []byte) []byte { b[at] ^= 1; return b })
			if s, err := openQuietly(Options{FS: damaged}); err == nil {
				t.Errorf("Open with byte %d of %d of the segment damaged = nil, want an error", at, size)
				closeTest(t, s)
			}
		}
	}
	if !found {
		t.Error("no log is long enough: the test tests nothing")
	}
}

// TestDamage_SealedSegment checks a damaged row in a sealed segment. Reading the row must return an
// error, and the store must continue. One case has a row that was decided here, the other an
// imported row.
func TestDamage_SealedSegment(t *testing.T) {
	for name, store := range map[string]func(w *storagetest.Writer, s *Store, r *storage.Record) error{
		"decided": func(w *storagetest.Writer, s *Store, r *storage.Record) error {
			_, err := w.Commit(t.Context(), s, r)
			return err
		},
		"imported": func(w *storagetest.Writer, s *Store, r *storage.Record) error {
			_, err := w.Commit(t.Context(), openTest(t, vfs.NewMem(), nil), r)
			return errors.Join(err, s.Import(t.Context(), "a", []*storage.Record{r}, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			open := func() *Store { return openWith(t, Options{FS: disk, segmentSize: 4000}) }
			s, w := open(), storagetest.NewWriter()
			first := w.Record("a")
			if err := store(w, s, first); err != nil {
				t.Fatalf("storing the first row = %v", err)
			}
			var last *storage.Record
			for range 40 {
				last = w.Record("a")
				commit(t, s, w, last)
			}
			closeTest(t, s)
			segment := filesOf(t, disk, ".segment")[0]
			damage(t, disk, segment, func(b []byte) []byte { b[200] ^= 1; return b })
			s = open()
			for range 2 {
				if got, err := s.Record(t.Context(), "a", first.DecisionID); !errors.Is(err, storage.ErrUnavailable) {
					t.Errorf("Record = %+v, %v, want ErrUnavailable", got, err)
				}
				if got, _, err := s.ListRecords(t.Context(), "a", storage.Filter{}, storage.Page{Limit: 50}); !errors.Is(err, storage.ErrUnavailable) {
					t.Errorf("ListRecords = %+v, %v, want ErrUnavailable", got, err)
				}
				if existing, err := w.Commit(t.Context(), s, w.Again(first)); !errors.Is(err, storage.ErrUnavailable) {
					t.Errorf("Commit of a known intent = %+v, %v, want ErrUnavailable", existing, err)
				}
			}
			if got, err := s.Record(t.Context(), "a", last.DecisionID); err != nil || got.Receipt != last.Receipt {
				t.Errorf("Record = %+v, %v, want the one", got, err)
			}
			if _, err := w.Commit(t.Context(), s, w.Record("a")); err != nil {
				t.Errorf("Commit of another intent = %v", err)
			}
			closeTest(t, s)
			damage(t, disk, segment, func(b []byte) []byte { b[200] ^= 1; return b })
			if got, err := open().Record(t.Context(), "a", first.DecisionID); err != nil || got.Receipt != first.Receipt {
				t.Errorf("Record once it is mended = %+v, %v, want the one", got, err)
			}
		})
	}
}

// TestDamage_LastFrameOfASegment damages the last frame of a sealed segment. The store opens, because the table of the
// segment is known by the rest. Only what is in the frame cannot be read.
func TestDamage_LastFrameOfASegment(t *testing.T) {
	disk, w := vfs.NewMem(), storagetest.NewWriter()
	open := func() (*Store, error) { return openQuietly(Options{FS: disk, segmentSize: 4000}) }
	s, err := open()
	must(t, err)
	var all []*storage.Record
	for range 40 {
		all = append(all, w.Record("a"))
		commit(t, s, w, all[len(all)-1])
	}
	last := s.log.Segments()[1].First - 2 // the records are in frames of their own
	closeTest(t, s)
	name := filesOf(t, disk, ".segment")[0]
	damage(t, disk, name, func(b []byte) []byte { b[bytes.LastIndex(b, []byte("wfrm"))+50] ^= 1; return b })
	s, err = open()
	must(t, err)
	for i, r := range all {
		got, err := s.Record(t.Context(), "a", r.DecisionID)
		if i == int(last) && !errors.Is(err, storage.ErrUnavailable) || i != int(last) && (err != nil || got.Receipt != r.Receipt) {
			t.Errorf("Record of row %d = %+v, %v; frame %d is damaged", i, got, err, last+1)
		}
		if _, err := w.Commit(t.Context(), s, w.Again(r)); (err != nil) != (i == int(last)) {
			t.Errorf("Commit of the known intent %d = %v", i, err)
		}
	}
	closeTest(t, s)
	must(t, disk.Remove(filesOf(t, disk, ".index")[0]))
	if s, err := open(); err == nil {
		t.Error("Open without the table = nil: nobody can know which intents the frame decided")
		closeTest(t, s)
	}
}
