package embedded

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestImport_Crash checks that imports and abandoned imports survive a crash, with and without
// WriteBehind.
func TestImport_Crash(t *testing.T) {
	for _, behind := range []int{0, 16} {
		disk, w := vfs.NewCrashableMem(), storagetest.NewWriter()
		s := openWith(t, Options{FS: disk, WriteBehind: behind})
		crashed := func() *Store { return openTest(t, disk.CrashClone(vfs.CrashCloneCfg{}), nil) }
		imported := importRows(t, s, w, "a")
		imported.wantIn(t, crashed())
		commit(t, s, w, w.Record("b"))
		if n, err := s.RemoveImported(t.Context(), "a", 2); n != 2 || err != nil {
			t.Fatalf("RemoveImported = %d, %v, want 2", n, err)
		}
		if n, err := crashed().CountImported(t.Context(), "a"); n.All() != 2 || err != nil {
			t.Errorf("CountImported = %+v, %v, want 2", n, err)
		}
		imported.into(t, s)
		imported.wantIn(t, crashed())
		closeTest(t, s)
		imported.wantIn(t, openTest(t, disk, nil))
	}
}

// TestImport_CrashWhileAbandoning checks a crash during RemoveImported. The next call must remove
// all remaining rows of the import.
func TestImport_CrashWhileAbandoning(t *testing.T) {
	disk, w := vfs.NewCrashableMem(), storagetest.NewWriter()
	s := openTest(t, disk, nil)
	importRows(t, s, w, "a")
	commit(t, s, w, w.Record("a"))
	var items [][]byte
	none := storage.Imported{}
	if err := errors.Join(s.keepNow(), s.eachImported(t.Context(), "a", s.tip.ID, &none, func(intent string, id uuid.UUID, _ *row) (bool, error) {
		items = append(items, ofIntent(abandonedItem, "a", intent, id, nil))
		return len(items) < 3, nil
	})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writeImport(items); err != nil { // the crash precedes the deletion of the rows' keys
		t.Fatal(err)
	}
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	before := contents(t, crashed)
	if readClosed(t, crashed, func(*ReadOnly) {}); !maps.Equal(before, contents(t, crashed)) {
		t.Error("reading changed the directory")
	}
	again := openTest(t, crashed, nil)
	if n, err := again.RemoveImported(t.Context(), "a", 10); n != 1 || err != nil {
		t.Errorf("RemoveImported = %d, %v, want 1", n, err)
	}
	if got := listed(t, again, "a"); len(got) != 1 {
		t.Errorf("ListRecords = %d rows, want the one that was decided here", len(got))
	}
	storagetest.Check(t, again, w.Keys(t), "a")
}

// TestImport_Lost checks a lost last frame that contains an import. Open must return an error.
// After an operator has accepted the loss, no key may refer to the import, and no meter may count
// the import.
func TestImport_Lost(t *testing.T) {
	for name, flushed := range map[string]bool{"its keys too": false, "its keys are there": true} {
		t.Run(name, func(t *testing.T) {
			disk, w := vfs.NewCrashableMem(), storagetest.NewWriter()
			s := openTest(t, disk, nil)
			row := w.Record("a")
			commit(t, s, w, row)
			imported := importRows(t, s, w, "a")
			if flushed {
				must(t, s.keepNow())
			}
			s.recordTip()
			crashed := disk.CrashClone(vfs.CrashCloneCfg{})
			damage(t, crashed, filesOf(t, crashed, ".segment")[0], func(b []byte) []byte {
				clear(b[bytes.LastIndex(b, []byte("wfrm")):])
				return b
			})
			const lost = "it ends at frame 1, and data.tip notes frame 2"
			readClosed(t, crashed, func(r *ReadOnly) {
				if err := r.checkEnds(t.Context()); err == nil || !strings.Contains(err.Error(), lost) {
					t.Errorf("checkEnds = %v, want that a frame is lost", err)
				}
			})
			_, err := openQuietly(Options{FS: crashed})
			if !errors.Is(err, errRolledBack) || !strings.Contains(err.Error(), lost) {
				t.Fatalf("Open = %v, want that a frame is lost", err)
			}
			again, err := openQuietly(Options{FS: crashed, AcceptRollback: new(uint64(1))})
			must(t, err)
			defer closeTest(t, again)
			if got := listed(t, again, "a"); len(got) != 1 || got[0].DecisionID != row.DecisionID {
				t.Errorf("ListRecords = %+v, want the row that was decided", got)
			}
			if n, err := again.Metered(t.Context(), "a", storage.MonthOf(row.DecidedAt)); n != 1 || err != nil {
				t.Errorf("Metered = %d, %v, want 1", n, err)
			}
			if flushed { // a flush puts the leaves of the removed row into Pebble
				if n, err := again.RemoveImported(t.Context(), "a", 10); n != 1 || err != nil {
					t.Errorf("RemoveImported = %d, %v, want 1", n, err)
				}
			}
			imported.into(t, again)
		})
	}
}
