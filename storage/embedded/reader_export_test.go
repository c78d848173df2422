package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ/ledger/receipt"
	"writ/storage"
	"writ/storage/storagetest"
)

// TestReader_OneOrganization reads what an export does.
func TestReader_OneOrganization(t *testing.T) {
	w := writeHistory(t)
	r, err := OpenReader("data", Options{FS: w.disk})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	storagetest.OneOrganization(t, r, "acme", w.acme, 4, "rival")
	if n, newest, err := r.Size(t.Context(), "ac"); n != 16 || newest == "" || err != nil {
		t.Errorf("Size of another = %d, %q, %v, want 16", n, newest, err)
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
	if got, err := s.Decided(t.Context(), "acme", "older", ""); err != nil || !got.Removed() || got.DecisionID != id.String() {
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
