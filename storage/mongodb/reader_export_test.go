package mongodb

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/storage"
)

// TestReader_OneOrganization reads what an export does, some rows at a time.
func TestReader_OneOrganization(t *testing.T) {
	w := writeHistory(t)
	want, _, err := w.s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(want)
	r, err := OpenReader(t.Context(), w.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, r.most = range []int{1, 3, 8, 4096} {
		if n, newest, err := r.Size(t.Context(), "acme"); n != len(want) || newest != want[len(want)-1].DecisionID || err != nil {
			t.Errorf("Size = %d, %s, %v, want %d", n, newest, err, len(want))
		}
		for i := range len(want) + 1 {
			after := ""
			if i > 0 {
				after = want[i-1].DecisionID
			}
			var got []*storage.Record
			if err := r.RowsOf(t.Context(), "acme", after, func(r *storage.Record) error { got = append(got, r); return nil }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[i:], got, cmp.Comparer(func(a, b []*storage.Record) bool { return len(a)+len(b) == 0 || cmp.Equal(a, b) })); diff != "" {
				t.Errorf("RowsOf after %q, %d at a time: -want +got\n%s", after, r.most, diff)
			}
		}
		var all, own []string
		add := func(to *[]string) func(*storage.Tombstone) error {
			return func(t *storage.Tombstone) error {
				if t.OrganizationID == "acme" {
					*to = append(*to, t.IntentID+t.DecisionID)
				}
				return nil
			}
		}
		if err := errors.Join(r.Tombstones(t.Context(), add(&all)), r.TombstonesOf(t.Context(), "acme", add(&own))); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(own, all) || len(own) != 4 {
			t.Errorf("TombstonesOf, %d at a time = %q, want %q", r.most, own, all)
		}
		if err := r.TombstonesOf(t.Context(), "ri\x00val", func(t *storage.Tombstone) error { return errors.New(t.DecisionID) }); err != nil {
			t.Errorf("TombstonesOf of one without any = %v", err)
		}
	}
	if n, newest, err := r.Size(t.Context(), "nobody"); n != 0 || newest != "" || err != nil {
		t.Errorf("Size of nobody = %d, %q, %v", n, newest, err)
	}
	if err := r.RowsOf(t.Context(), "acme", "x", nil); err == nil {
		t.Error("RowsOf after what is no id = nil, want an error")
	}
}
