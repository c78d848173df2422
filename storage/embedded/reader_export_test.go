package embedded

import (
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"writ/ledger/receipt"
	"writ/storage"
)

// TestReader_OneOrganization reads what an export does.
func TestReader_OneOrganization(t *testing.T) {
	w := writeHistory(t)
	r, err := OpenReader("data", Options{FS: w.disk})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := w.acme
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
		if diff := cmp.Diff(want[i:], got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("RowsOf after %q: -want +got\n%s", after, diff)
		}
	}
	var all, own []string
	add := func(to *[]string) func(*storage.Tombstone) error {
		return func(t *storage.Tombstone) error {
			*to = append(*to, t.IntentID+t.DecisionID)
			return nil
		}
	}
	if err := errors.Join(r.TombstonesOf(t.Context(), "acme", add(&own)), r.Tombstones(t.Context(), add(&all))); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(own, all) || len(own) != 4 {
		t.Errorf("TombstonesOf = %q, want %q", own, all)
	}
	if err := r.TombstonesOf(t.Context(), "rival", func(t *storage.Tombstone) error { return errors.New(t.DecisionID) }); err != nil {
		t.Errorf("TombstonesOf of one without any = %v", err)
	}
	if n, newest, err := r.Size(t.Context(), "ac"); n != 16 || newest == "" || err != nil {
		t.Errorf("Size of another = %d, %q, %v, want 16", n, newest, err)
	}
	if err := r.RowsOf(t.Context(), "acme", "x", nil); err == nil {
		t.Error("RowsOf after what is no id = nil, want an error")
	}
}

// TestReader_TombstonesOf_Unmarked: of what was removed before there were tombstones its
// intent is left, which stays decided where it is imported.
func TestReader_TombstonesOf_Unmarked(t *testing.T) {
	w := writeHistory(t)
	id := uuid.MustParse("01900000-0000-7000-8000-000000000001")
	w.change(t, func(s *Store) {
		put(t, s, orgKey(kindIntent, "acme").text("older"), id[:])
		put(t, s, removedKey("acme"), id[:])
	})
	r, err := OpenReader("data", Options{FS: w.disk})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var found *storage.Tombstone
	if err := r.TombstonesOf(t.Context(), "acme", func(t *storage.Tombstone) error {
		if t.IntentID == "older" {
			found = t
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := &storage.Tombstone{OrganizationID: "acme", IntentID: "older", DecisionID: id.String(), Leaves: make([]receipt.Leaf, 1)}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Fatalf("TombstonesOf: -want +got\n%s", diff)
	}
	to := vfs.NewMem()
	s, err := Open("to", Options{FS: to})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Import(t.Context(), "acme", nil, []*storage.Tombstone{found}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Decided(t.Context(), "acme", "older"); err != nil || !got.Removed() || got.DecisionID != id.String() {
		t.Errorf("Decided = %+v, %v, want what is left of %s", got, err, id)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenReader("to", Options{FS: to})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	want.Imported = true
	if err := again.TombstonesOf(t.Context(), "acme", func(got *storage.Tombstone) error {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("TombstonesOf where it was imported: -want +got\n%s", diff)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
