package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"writ/storage"
	"writ/storage/storagetest"
)

// TestRewrite_KeepsWhatIsNotRemoved: a segment of which much was removed becomes small, and
// all that is left of its frames is as before, in the store that rewrote it and after it is
// opened again.
func TestRewrite_KeepsWhatIsNotRemoved(t *testing.T) {
	disk, w := vfs.NewMem(), storagetest.NewWriter()
	open := func() *Store { return openWith(t, Options{FS: disk, segmentSize: 20_000}) }
	s := open()
	var all []*storage.Record
	for range 60 {
		batch := []*storage.Record{w.Record("a"), w.Record("b"), w.Record("a"), w.Record("a"), w.Record("a"), w.Record("a")}
		commit(t, s, w, batch...)
		if _, err := w.Settle(t.Context(), s, batch[0], storage.Settlement{Outcome: storage.Executed, RecordedAt: batch[0].DecidedAt}); err != nil {
			t.Fatalf("Settle = %v", err)
		}
		all = append(all, batch...)
	}
	before := s.log.Segments()
	if len(before) < 4 {
		t.Fatalf("there are %d segments", len(before))
	}
	kept, _, err := s.ListRecords(t.Context(), "b", storage.Filter{}, storage.Page{Limit: 100})
	must(t, err)
	removed, err := s.RemoveRecords(t.Context(), "a", all[0].DecidedAt.AddDate(1, 0, 0), storage.Expired{Records: 80, Settled: 80})
	if err != nil || removed.Records != 80 {
		t.Fatalf("RemoveRecords = %+v, %v, want 80", removed, err)
	}
	until(t, func() bool { return !s.rewriting.Load() })
	if first := s.log.Segments()[0]; first.Bytes*3 > before[0].Bytes*2 {
		t.Errorf("the first segment takes %d bytes, and %d before", first.Bytes, before[0].Bytes)
	}
	for range 2 {
		got, _, err := s.ListRecords(t.Context(), "b", storage.Filter{}, storage.Page{Limit: 100})
		if diff := cmp.Diff(kept, got); err != nil || diff != "" {
			t.Errorf("ListRecords = %v, -before +after\n%s", err, diff)
		}
		existing, err := w.Commit(t.Context(), s, w.Again(all[0]))
		if err != nil || existing[0] == nil || !existing[0].Removed() {
			t.Errorf("Commit of a removed intent = %v, %v, want what is left of it", existing, err)
		}
		closeTest(t, s)
		s = open()
	}
}
