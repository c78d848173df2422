package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// waitFilled waits until the index's filter has all stored intents.
func waitFilled(t *testing.T, s *Store) {
	t.Helper()
	until(t, func() bool { return s.index.Lacks(orgKey(kindIntent, "none").text(uuid.NewString())) })
}

// TestIntentFilter_HasWhatIsStored checks that the filter contains every stored intent, before and
// after the store is opened again. The test stores intents in every possible way.
func TestIntentFilter_HasWhatIsStored(t *testing.T) {
	fs := vfs.NewMem()
	w := storagetest.NewWriter()
	s := openTest(t, fs, nil)
	waitFilled(t, s)
	var all []*storage.Record
	for range 50 {
		r := w.Record("a")
		if !s.index.Lacks(orgKey(kindIntent, "a").text(r.IntentID)) {
			t.Errorf("the filter may have intent %s, which is not stored", r.IntentID)
		}
		commit(t, s, w, r, w.Record("b"))
		all = append(all, r)
	}
	removeRows(t, s, "b", all[0].DecidedAt.AddDate(1, 0, 0), 20)
	for run := range 3 {
		n := 0
		err := s.index.Scan(t.Context(), key{byte(kindIntent)}, key{byte(kindIntent) + 1}, func(k, _ []byte) (bool, error) {
			n++
			if s.index.Lacks(k) {
				t.Errorf("run %d: the filter lacks %q", run, k)
			}
			return false, nil
		})
		if n != 100 || err != nil {
			t.Errorf("run %d: there are %d intents, %v, want 100", run, n, err)
		}
		existing, err := w.Commit(t.Context(), s, w.Again(all[run]))
		if err != nil || existing[0] == nil || existing[0].DecisionID != all[run].DecisionID {
			t.Errorf("run %d: Commit of a stored intent = %v, %v, want decision %s", run, existing, err, all[run].DecisionID)
		}
		closeTest(t, s)
		s = openTest(t, fs, nil)
		if run > 0 { // during the first run the filter may be incomplete
			waitFilled(t, s)
		}
	}
}

// TestIntentFilter_MayBeWrong checks that a false positive of the filter does not prevent a
// decision.
func TestIntentFilter_MayBeWrong(t *testing.T) {
	s, w := openTest(t, vfs.NewMem(), nil), storagetest.NewWriter()
	waitFilled(t, s)
	gone := importRows(t, s, w, "a").rows[0]
	if n, err := s.RemoveImported(t.Context(), "a", 10); n != 4 || err != nil {
		t.Fatalf("RemoveImported = %d, %v, want 4", n, err)
	}
	if s.index.Lacks(orgKey(kindIntent, "a").text(gone.IntentID)) {
		t.Error("the index knows that the intent is not stored: the test tests nothing")
	}
	if existing, err := w.Commit(t.Context(), s, w.Again(gone)); err != nil || existing[0] != nil {
		t.Errorf("Commit = %v, %v, want it to be first", existing, err)
	}
}
