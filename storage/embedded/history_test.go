package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

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
