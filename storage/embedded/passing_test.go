package embedded

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestRows_OfManyOrganizations checks that a head with rows of many organizations is read with a bounded number of
// lookups, and with the settlements of its rows.
func TestRows_OfManyOrganizations(t *testing.T) {
	s, w := openTest(t, vfs.NewMem(), nil), storagetest.NewWriter()
	var all []*storage.Record
	for i := range 2*orgsAtOnce + 5 {
		org := fmt.Sprint("org-", i)
		all = append(all, w.Record(org), w.Record(org))
	}
	commit(t, s, w, all...)
	for i := 0; i < len(all); i += 2 {
		execute(t, s, w, all[i])
	}
	l := lookups{view: s.now()}
	var rows storage.HeadRows
	f, err := s.frame(1)
	must(t, err)
	must(t, s.rowsOf(f, &storage.RowQuery{}, &l, &rows))
	if len(l.orgs) > orgsAtOnce || len(rows.Records) != len(all) {
		t.Errorf("there are %d lookups and %d rows, want at most %d and %d", len(l.orgs), len(rows.Records), orgsAtOnce, len(all))
	}
	for i, r := range rows.Records {
		if r.DecisionID != all[i].DecisionID || (r.Settlement != nil) != (i%2 == 0) {
			t.Errorf("row %d = %+v", i, r)
		}
	}
}
