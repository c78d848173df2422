package embedded

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestListRecords_BoundedPage checks that a page ends after the filter has skipped a fixed number
// of rows. The page has the records found so far, and a cursor for the next page.
func TestListRecords_BoundedPage(t *testing.T) {
	s := openTest(t, vfs.NewMem(), nil)
	w := storagetest.NewWriter()
	batch := make([]*storage.Record, 6)
	for i := range batch {
		batch[i] = w.Record("a", func(r *storage.Record) {
			if i == 0 {
				r.AgentID = "rare"
			}
		})
	}
	commit(t, s, w, batch...)
	f := storage.Filter{AgentIDs: []string{"rare"}}
	l := recordLister{s: s, org: "a", filter: f, limit: 10, skipped: storage.MaxPage/2 - 4}
	must(t, s.now().rows(t.Context(), l.query(nil), l.row))
	if len(l.records) != 0 || l.next == "" {
		t.Errorf("page of 4 rows = %d records, next %q; want none and a cursor", len(l.records), l.next)
	}
	got, next, err := s.ListRecords(t.Context(), "a", f, storage.Page{Limit: 10, After: l.next})
	if err != nil || len(got) != 1 || got[0].DecisionID != batch[0].DecisionID || next != "" {
		t.Errorf("the page after = %d records, next %q, %v; want the rare one, none, nil", len(got), next, err)
	}
}

// TestListRecords_BetweenSkippedFrames checks records whose frames are read between frames without a record that the
// filter selects. The cache must have the former as they are stored.
func TestListRecords_BetweenSkippedFrames(t *testing.T) {
	s, w, want := openTest(t, vfs.NewMem(), nil), storagetest.NewWriter(), make(map[string]*storage.Record)
	for i := range 3 * decodedFrames {
		batch := make([]*storage.Record, 3)
		for n := range batch {
			batch[n] = w.Record("a", func(r *storage.Record) { r.AgentID = fmt.Sprintf("agent-%d", i%3) })
		}
		commit(t, s, w, batch...)
	}
	for _, r := range listed(t, s, "a") {
		want[r.DecisionID] = r
	}
	s.frames.forget()
	got, _, err := s.ListRecords(t.Context(), "a", storage.Filter{AgentIDs: []string{"agent-1"}}, storage.Page{Limit: 100})
	must(t, err)
	if len(got) != 3*decodedFrames {
		t.Errorf("the page has %d records, want %d", len(got), 3*decodedFrames)
	}
	for range 2 {
		for _, r := range got {
			if diff := cmp.Diff(want[r.DecisionID], r); diff != "" {
				t.Fatalf("a record between skipped frames -want +got\n%s", diff)
			}
			cached, err := s.Record(t.Context(), "a", r.DecisionID)
			if diff := cmp.Diff(want[r.DecisionID], cached); err != nil || diff != "" {
				t.Fatalf("Record = %v, -want +got\n%s", err, diff)
			}
		}
	}
}
