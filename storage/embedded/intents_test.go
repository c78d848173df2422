package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ/storage"
	"writ/storage/storagetest"
)

// waitKnown waits until the filter has the stored intents.
func waitKnown(t *testing.T, s *Store) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for !s.known.ready.Load() {
		select {
		case <-ctx.Done():
			t.Fatal("the filter of intents was not filled")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestIntentFilter_HasWhatIsStored: the filter lacks no stored intent, however it came to be
// stored, before and after the store is opened again.
func TestIntentFilter_HasWhatIsStored(t *testing.T) {
	fs := vfs.NewMem()
	w := storagetest.NewWriter()
	s := openTest(t, fs, nil)
	waitKnown(t, s)
	var all []*storage.Record
	for range 50 {
		r := w.Record("a")
		if !s.known.lacks(hashIntent(orgKey(kindIntent, "a").text(r.IntentID))) {
			t.Errorf("the filter may have intent %s, which is not stored", r.IntentID)
		}
		commit(t, s, w, r, w.Record("b"))
		all = append(all, r)
	}
	removed, err := s.RemoveRecords(t.Context(), "b", all[0].DecidedAt.AddDate(1, 0, 0), storage.Expired{Records: 20})
	if removed.Records != 20 || err != nil {
		t.Fatalf("RemoveRecords = %+v, %v, want 20", removed, err)
	}
	for run := range 3 {
		n := 0
		err := s.scan(t.Context(), key{byte(kindIntent)}, key{byte(kindIntent) + 1}, func(k, _ []byte) (bool, error) {
			n++
			if s.known.lacks(hashIntent(k)) {
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
		if run == 0 {
			s.known.ready.Store(false) // as before it is filled
			continue
		}
		waitKnown(t, s)
	}
	closeTest(t, s)
}

// TestIntentFilter_MayBeWrong: an intent that only looks stored is decided.
func TestIntentFilter_MayBeWrong(t *testing.T) {
	w := storagetest.NewWriter()
	s := openTest(t, vfs.NewMem(), nil)
	waitKnown(t, s)
	r := w.Record("a")
	s.known.add(hashIntent(orgKey(kindIntent, "a").text(r.IntentID)))
	if existing, err := w.Commit(t.Context(), s, r); err != nil || existing[0] != nil {
		t.Errorf("Commit = %v, %v, want it to be first", existing, err)
	}
	closeTest(t, s)
}
