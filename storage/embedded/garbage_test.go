package embedded

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestRewrite_KeepsWhatIsNotRemoved checks that a segment becomes small after most of its rows were
// removed. The segment's kept rows must not change. The test reads the kept rows before and after
// the store is opened again.
func TestRewrite_KeepsWhatIsNotRemoved(t *testing.T) {
	disk, w := vfs.NewMem(), storagetest.NewWriter()
	open := func() *Store { return openWith(t, Options{FS: disk, segmentSize: 20_000}) }
	s := open()
	var all []*storage.Record
	for range 60 {
		batch := []*storage.Record{w.Record("a"), w.Record("b"), w.Record("a"), w.Record("a"), w.Record("a"), w.Record("a")}
		commit(t, s, w, batch...)
		execute(t, s, w, batch[0])
		all = append(all, batch...)
	}
	before := s.log.Segments()
	if len(before) < 4 {
		t.Fatalf("there are %d segments", len(before))
	}
	kept := listed(t, s, "b")
	removeRows(t, s, "a", all[0].DecidedAt.AddDate(1, 0, 0), 80)
	until(t, func() bool { return !s.rewriting.Load() })
	if first := s.log.Segments()[0]; first.Bytes*3 > before[0].Bytes*2 {
		t.Errorf("the first segment takes %d bytes, and %d before", first.Bytes, before[0].Bytes)
	}
	for range 2 {
		if diff := cmp.Diff(kept, listed(t, s, "b")); diff != "" {
			t.Errorf("ListRecords: -before +after\n%s", diff)
		}
		wantRemovedCounted(t, s, all[1])
		existing, err := w.Commit(t.Context(), s, w.Again(all[0]))
		if err != nil || existing[0] == nil || !existing[0].Removed() {
			t.Errorf("Commit of a removed intent = %v, %v, want what is left of it", existing, err)
		}
		closeTest(t, s)
		s = open()
	}
}

// wantRemovedCounted checks that Rows counts the six records of the first head, of which only kept is left.
func wantRemovedCounted(t *testing.T, s *Store, kept *storage.Record) {
	t.Helper()
	tip, err := s.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	err = s.Rows(t.Context(), storage.RowQuery{Chain: tip.ID}, func(rows storage.HeadRows) error {
		if rows.Count != 6 || len(rows.Records) != 1 || rows.Records[0].DecisionID != kept.DecisionID {
			t.Errorf("Rows = %+v, want 6 records, of which %s is left", rows, kept.DecisionID)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Errorf("Rows = %v, want the error of its function", err)
	}
}
