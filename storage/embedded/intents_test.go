package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/storagetest"
)

// waitFilled waits until the filter has all stored intents.
func waitFilled(t *testing.T, s *Store) {
	t.Helper()
	until(t, func() bool { return s.tables.Lacks(s.tables.Hash("none", uuid.NewString())) })
}

// TestIntentFilter_HasWhatIsStored checks that each intent that was decided counts as decided, before and after the store
// is opened again: in the active segment, in tables, and after its row was removed and its segment rewritten.
func TestIntentFilter_HasWhatIsStored(t *testing.T) {
	fs := vfs.NewMem()
	w := storagetest.NewWriter()
	open := func() *Store { return openWith(t, Options{FS: fs, segmentSize: 4000}) }
	s := open()
	waitFilled(t, s)
	var all []*storage.Record
	for range 50 {
		r, other := w.Record("a"), w.Record("b")
		if !s.tables.Lacks(s.tables.Hash("a", r.IntentID)) {
			t.Logf("the filter may have intent %s, which is not stored", r.IntentID)
		}
		commit(t, s, w, r, other)
		all = append(all, r, other)
	}
	removeRows(t, s, "b", all[0].DecidedAt.AddDate(1, 0, 0), 20)
	removeRows(t, s, "a", all[0].DecidedAt.AddDate(1, 0, 0), 20)
	until(t, func() bool { return !s.rewriting.Load() })
	if s.log.Segments()[0].Bytes > 2500 {
		t.Error("no segment was rewritten: the test tests too little")
	}
	for run := range 3 {
		for i, r := range all {
			if s.tables.Lacks(s.tables.Hash(r.OrganizationID, r.IntentID)) {
				t.Errorf("run %d: the filter lacks intent %d", run, i)
			}
			existing, err := w.Commit(t.Context(), s, w.Again(r))
			if err != nil || existing[0] == nil || existing[0].DecisionID != r.DecisionID || existing[0].Removed() != (i < 40) {
				t.Errorf("run %d: Commit of a stored intent = %v, %v, want decision %s", run, existing, err, r.DecisionID)
			}
			got, _, err := s.ListRecords(t.Context(), r.OrganizationID, storage.Filter{IntentID: r.IntentID}, storage.Page{Limit: 9})
			if err != nil || len(got) != 1 && i >= 40 || len(got) > 0 && i < 40 {
				t.Errorf("run %d: ListRecords of intent %d = %v, %v", run, i, got, err)
			}
		}
		closeTest(t, s)
		if n := len(filesOf(t, fs, ".index")); n < 5 {
			t.Errorf("there are %d tables", n)
		}
		readClosed(t, fs, func(r *ReadOnly) {
			if err := r.s.tables.Check(t.Context()); err != nil {
				t.Errorf("Check = %v", err)
			}
		})
		s = open()
		if run > 0 { // during the first run the filter may be incomplete
			waitFilled(t, s)
		}
	}
}

// TestIntentFilter_MayBeWrong checks that an abandoned import, which the filter still has, does not prevent a
// decision. It can be imported again, and then counts as decided.
func TestIntentFilter_MayBeWrong(t *testing.T) {
	fs, w := vfs.NewMem(), storagetest.NewWriter()
	open := func() *Store { return openWith(t, Options{FS: fs, segmentSize: 2000}) }
	s := open()
	waitFilled(t, s)
	imported := importRows(t, s, w, "a")
	for run := range 3 {
		if n, err := s.RemoveImported(t.Context(), "a", 10); n != 4 || err != nil {
			t.Fatalf("RemoveImported = %d, %v, want 4", n, err)
		}
		if run == 1 {
			closeTest(t, s)
			s = open()
			waitFilled(t, s)
		}
		for _, gone := range imported.rows {
			if s.tables.Lacks(s.tables.Hash("a", gone.IntentID)) {
				t.Error("the filter knows that the intent is not stored: the test tests nothing")
			}
			if r, err := s.Decided(t.Context(), "a", gone.IntentID, ""); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Decided of an abandoned import = %v, %v, want none", r, err)
			}
		}
		if run == 2 {
			break
		}
		imported.into(t, s)
		imported.wantIn(t, s)
	}
	gone := imported.rows[0]
	if existing, err := w.Commit(t.Context(), s, w.Again(gone)); err != nil || existing[0] != nil {
		t.Errorf("Commit = %v, %v, want it to be first", existing, err)
	}
}

// TestIntents_Damage loses and damages tables, and loses the secret with which they are made. A server that starts makes
// them again, and no intent is decided twice.
func TestIntents_Damage(t *testing.T) {
	fs, w := vfs.NewMem(), storagetest.NewWriter()
	open := func() *Store { return openWith(t, Options{FS: fs, segmentSize: 4000}) }
	s := open()
	var all []*storage.Record
	for range 60 {
		all = append(all, w.Record("a"))
		commit(t, s, w, all[len(all)-1])
	}
	closeTest(t, s)
	whole := make(map[string]string)
	for _, name := range filesOf(t, fs, ".index") {
		whole[name] = string(content(t, fs, name))
	}
	for _, test := range []struct {
		what   string
		change func(name string)
	}{
		{"lost", func(name string) { must(t, fs.Remove(name)) }},
		{"cut", func(name string) { damage(t, fs, name, func(b []byte) []byte { return b[:len(b)-1] }) }},
		{"a bit", func(name string) { damage(t, fs, name, func(b []byte) []byte { b[len(b)-9] ^= 1; return b }) }},
		{"the secret", nil},
	} {
		change := test.change
		t.Run(test.what, func(t *testing.T) {
			if change == nil {
				s := open()
				del(t, s, secretKey)
				closeTest(t, s)
			} else {
				for name := range whole {
					change(name)
				}
			}
			s := open()
			for _, r := range all {
				existing, err := w.Commit(t.Context(), s, w.Again(r))
				if err != nil || existing[0] == nil || existing[0].DecisionID != r.DecisionID {
					t.Errorf("Commit of a stored intent = %v, %v, want decision %s", existing, err, r.DecisionID)
				}
			}
			closeTest(t, s)
			for _, name := range filesOf(t, fs, ".index") {
				if again := string(content(t, fs, name)); again != whole[name] && change != nil {
					t.Errorf("%s was not made again as it was", name)
				}
			}
		})
	}
}

// TestIntents_DamagedWithTheSegment damages a segment whose table is lost. Nobody can know which intents it decided, so the
// store is not opened.
func TestIntents_DamagedWithTheSegment(t *testing.T) {
	fs, w := vfs.NewMem(), storagetest.NewWriter()
	s := openWith(t, Options{FS: fs, segmentSize: 4000})
	for range 30 {
		commit(t, s, w, w.Record("a"))
	}
	closeTest(t, s)
	damage(t, fs, filesOf(t, fs, ".segment")[0], func(b []byte) []byte { b[200] ^= 1; return b })
	must(t, fs.Remove(filesOf(t, fs, ".index")[0]))
	if s, err := openQuietly(Options{FS: fs, segmentSize: 4000}); !errors.Is(err, storage.ErrUnavailable) && err == nil {
		t.Errorf("Open = %v, %v, want an error", s, err)
	}
}

// TestCheckIndex_Intents checks that CheckIndex finds a table that lacks an intent, and two rows of one intent.
func TestCheckIndex_Intents(t *testing.T) {
	fs, w := vfs.NewMem(), storagetest.NewWriter()
	s := openWith(t, Options{FS: fs, segmentSize: 4000})
	var sums storage.RowSums
	for range 30 {
		r := w.Record("a")
		commit(t, s, w, r)
		sums.Add(idOf(r), r)
	}
	check := func(want string) {
		t.Helper()
		readClosed(t, fs, func(r *ReadOnly) {
			err := r.CheckIndex(t.Context(), storage.IndexCheck{
				Rows:     map[string]storage.RowSums{"a": sums},
				Document: func(storage.Document, string) error { return nil },
				Meter:    func(string, storage.Month, int64) error { return nil },
			})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("CheckIndex = %v, want %q", err, want)
			}
		})
	}
	closeTest(t, s)
	check("")
	s = openWith(t, Options{FS: fs, segmentSize: 4000})
	twice := listed(t, s, "a")[3]
	before := twice.DecisionID
	id := uuid.Must(uuid.NewV7())
	twice.DecisionID = id.String()
	putItems(t, s, encoded(func(c *codec) { c.record(twice, id, false) }))
	sums.Add(id, twice)
	closeTest(t, s)
	check(fmt.Sprintf("its intent %q is decided by %s too", twice.IntentID, id))
	if before == twice.DecisionID {
		t.Error("the rows are the same")
	}
}

// TestSnapshot_HasTables checks that a snapshot has the tables of its segments, so that a backup is opened quickly.
func TestSnapshot_HasTables(t *testing.T) {
	fs, w := vfs.NewMem(), storagetest.NewWriter()
	s := openWith(t, Options{FS: fs, segmentSize: 4000})
	for range 30 {
		commit(t, s, w, w.Record("a"))
	}
	until(t, func() bool { return len(s.log.Segments()) == 1+countTables(t, fs, "data") })
	must(t, s.Snapshot(t.Context(), func(_ context.Context, dir string, _ Snapshot) error {
		if got, want := countTables(t, fs, dir), countTables(t, fs, "data"); got != want {
			t.Errorf("the snapshot has %d tables, want %d", got, want)
		}
		return nil
	}))
}

func countTables(t *testing.T, fs vfs.FS, dir string) (n int) {
	t.Helper()
	names, err := fs.List(dir)
	must(t, err)
	for _, name := range names {
		if index.IsTable(name) && !strings.HasSuffix(name, ".new") {
			n++
		}
	}
	return n
}
