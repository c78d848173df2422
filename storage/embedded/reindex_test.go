package embedded

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// historyRows returns the keys and values of the history in Pebble.
func historyRows(t *testing.T, s *Store) map[string]string {
	t.Helper()
	rows := make(map[string]string)
	err := errors.Join(s.keepNow(), s.scan(t.Context(), key{byte(kindTrimmed) + 1}, key{0xff}, func(k, v []byte) (bool, error) {
		rows[string(k)] = string(v)
		return false, nil
	}))
	must(t, err)
	return rows
}

// writeIndexed fills a store with batches of records, settlements and imports. It abandons one
// import and imports it again. It also removes some rows.
func writeIndexed(t *testing.T, s *Store, w *storagetest.Writer, batches int) {
	t.Helper()
	var first *storage.Record
	for range batches {
		batch := []*storage.Record{w.Record("a"), w.Record("b"), w.Record("a"), w.Record("a")}
		commit(t, s, w, batch...)
		execute(t, s, w, batch[0])
		if first == nil {
			first = batch[0]
		}
	}
	removeRows(t, s, "a", first.DecidedAt.AddDate(1, 0, 0), 20)
	imported := importRows(t, s, w, "c")
	if n, err := s.RemoveImported(t.Context(), "c", 4); n != 4 || err != nil {
		t.Fatalf("RemoveImported = %d, %v, want 4", n, err)
	}
	imported.into(t, s)
	removeRows(t, s, "c", imported.rows[0].DecidedAt.Add(2*storage.MaxSkew), 1)
	importRows(t, s, storagetest.NewWriterFrom(w), "d").wantIn(t, s)
}

// anImport is an organization's history in another store. It has three rows, the first two settled,
// and the tombstone of a fourth row.
type anImport struct {
	org     string
	rows    []*storage.Record
	removed []*storage.Tombstone
}

func importRows(t *testing.T, s *Store, w *storagetest.Writer, org string) *anImport {
	t.Helper()
	w, foreign := storagetest.NewWriterFrom(w), openTest(t, vfs.NewMem(), nil)
	i := &anImport{org: org, rows: []*storage.Record{w.Record(org), w.Record(org), w.Record(org), w.Record(org)}}
	commit(t, foreign, w, i.rows...)
	for _, r := range i.rows[:2] {
		execute(t, foreign, w, r)
	}
	gone := i.rows[3]
	leaf, err := gone.Receipt.Inclusion().Leaf(gone.Receipt.LeafHash())
	must(t, err)
	i.rows, i.removed = i.rows[:3], []*storage.Tombstone{{
		OrganizationID: org, IntentID: gone.IntentID, DecisionID: gone.DecisionID, Leaves: []receipt.Leaf{leaf}, Imported: true,
	}}
	for n, r := range i.rows {
		if i.rows[n], err = foreign.Record(t.Context(), org, r.DecisionID); err != nil {
			t.Fatal(err)
		}
	}
	i.into(t, s)
	return i
}

func (i *anImport) into(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.Import(t.Context(), i.org, i.rows, i.removed))
}

// wantIn reports an error unless a store has the import.
func (i *anImport) wantIn(t *testing.T, s *Store) {
	t.Helper()
	got := listed(t, s, i.org)
	slices.Reverse(got)
	if diff := cmp.Diff(i.rows, got); diff != "" {
		t.Errorf("ListRecords: -imported +got\n%s", diff)
	}
	for _, gone := range i.removed {
		if r, err := s.Decided(t.Context(), i.org, gone.IntentID, ""); err != nil || !r.Removed() || r.DecisionID != gone.DecisionID {
			t.Errorf("Decided = %+v, %v, want what is left of %s", r, err, gone.DecisionID)
		}
	}
	if n, err := s.CountImported(t.Context(), i.org); n != (storage.Imported{Rows: 3, Removed: 1}) || err != nil {
		t.Errorf("CountImported = %+v, %v, want 3 rows and what is left of 1", n, err)
	}
}

// TestReindex deletes keys of the index. They must exist again once the store is open. Removed rows
// must stay removed.
func TestReindex(t *testing.T) {
	disk, w := vfs.NewMem(), storagetest.NewWriter()
	s := openTest(t, disk, nil)
	writeIndexed(t, s, w, 30)
	until(t, func() bool { return !s.rewriting.Load() })
	want := historyRows(t, s)
	closeTest(t, s)
	// ofHistory reports whether a key can be computed from the segments. The intents of removed
	// rows cannot be computed.
	ofHistory := func(k, v string) bool {
		_, left, imported, err := parseIntent([]byte(v), [16]byte{})
		return k[0] == 'c' || k[0] == 'i' && err == nil && (len(left) == 0 || imported)
	}
	for name, lost := range map[string]func(k, v string) bool{
		"the mark":        func(string, string) bool { return false },
		"all keys":        ofHistory,
		"every third key": func(k, v string) bool { return ofHistory(k, v) && len(k+v)%3 == 0 },
		"all and a meter": func(k, v string) bool { return k[0] == 'm' || k[0] == 'c' },
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, disk, nil)
			for k, v := range want {
				if lost(k, v) {
					del(t, s, key(k))
				}
			}
			del(t, s, markKey(headStream, s.kept))
			closeTest(t, s)
			asCrashed(t, disk)
			readClosed(t, disk, func(*ReadOnly) {})
			log, shown := new(logged), []string(nil)
			s, err := Open("data", Options{FS: disk, Log: log.logger(), Progress: func(step string, done, of uint64) {
				if done > of {
					t.Errorf("%s: %d of %d", step, done, of)
				}
				if len(shown) == 0 || shown[len(shown)-1] != step {
					shown = append(shown, step)
				}
			}})
			must(t, err)
			defer closeTest(t, s)
			if steps := []string{"", "counting the history again", ""}; !slices.Equal(shown, steps) {
				t.Errorf("told %q, want %q", shown, steps)
			}
			if diff := cmp.Diff(want, historyRows(t, s)); diff != "" {
				t.Errorf("-before +rebuilt\n%s", diff)
			}
			if text := log.buf.String(); !strings.Contains(text, "they are made again from the segments") || !strings.Contains(text, "are whole again") {
				t.Errorf("the log does not tell of it:\n%s", text)
			}
			closeTest(t, s)
			log = new(logged)
			if openTest(t, disk, log); strings.Contains(log.buf.String(), "made again") {
				t.Errorf("they are made again once more:\n%s", log.buf.String())
			}
		})
	}
}

// TestReindex_LostTables cuts the end of Pebble's manifest after a crash, so that Pebble forgets
// tables of keys. The store must still have all acknowledged data.
func TestReindex_LostTables(t *testing.T) {
	disk, w := vfs.NewCrashableMem(), storagetest.NewWriter()
	s := openTest(t, disk, nil)
	fill(t, s, w, 1)
	must(t, errors.Join(s.keepNow(), s.db.Flush()))
	names := filesOf(t, disk, "")
	manifests := make(map[string]int)
	for _, name := range names {
		if strings.Contains(name, "MANIFEST") {
			manifests[name] = len(content(t, disk, name))
		}
	}
	for range 3 {
		commit(t, s, w, w.Record("a"), w.Record("a"), w.Record("b"), w.Record("b"))
		must(t, errors.Join(s.keepNow(), s.db.Flush()))
	}
	commit(t, s, w, w.Record("a"), w.Record("b"))
	want := historyRows(t, s)
	s.recordTip()
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	for name, size := range maps.All(manifests) {
		damage(t, crashed, name, func(b []byte) []byte { return b[:size] })
	}
	log := new(logged)
	s = openTest(t, crashed, log)
	defer closeTest(t, s)
	if !strings.Contains(log.buf.String(), "they are made again from the segments") {
		t.Errorf("the index was whole: the test tests nothing:\n%s", log.buf.String())
	}
	if diff := cmp.Diff(want, historyRows(t, s)); diff != "" {
		t.Errorf("-before +rebuilt\n%s", diff)
	}
	storagetest.Check(t, s, w.Keys(t), "a", "b")
}

// TestReindex_Pending loses the mark of a store that has crashed, with rows that were not kept and of which retention has
// removed some. Counts and meters must be right.
func TestReindex_Pending(t *testing.T) {
	disk, w := vfs.NewCrashableMem(), storagetest.NewWriter()
	s := openTest(t, disk, nil)
	commit(t, s, w, w.Record("a"), w.Record("b"))
	imported := importRows(t, s, w, "c")
	del(t, s, markKey(headStream, s.kept))
	row := w.Record("a")
	commit(t, s, w, row, w.Record("a"), w.Record("b"))
	removeRows(t, s, "a", row.DecidedAt.AddDate(1, 0, 0), 2)
	log := new(logged)
	again := openTest(t, disk.CrashClone(vfs.CrashCloneCfg{}), log)
	if !strings.Contains(log.buf.String(), "they are made again from the segments") {
		t.Errorf("the counts were whole: the test tests nothing:\n%s", log.buf.String())
	}
	storagetest.CheckCounts(t, again, "a", "b", "c")
	for org, want := range map[string]int64{"a": 3, "b": 2, "c": 0} {
		if n, err := again.Metered(t.Context(), org, storage.MonthOf(row.DecidedAt)); n != want || err != nil {
			t.Errorf("Metered(%s) = %d, %v, want %d", org, n, err, want)
		}
	}
	imported.wantIn(t, again)
}
