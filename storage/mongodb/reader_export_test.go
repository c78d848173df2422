package mongodb

import (
	"fmt"
	"slices"
	"testing"

	"writ/storage"
	"writ/storage/storagetest"
)

// TestSnapshot_OneOrganization reads what an export does, some rows at a time.
func TestSnapshot_OneOrganization(t *testing.T) {
	w := writeHistory(t)
	want, _, err := w.s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(want)
	r, err := OpenSnapshot(t.Context(), w.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, r.most = range []int{1, 3, 8, 4096} {
		t.Run(fmt.Sprint(r.most, " at a time"), func(t *testing.T) {
			storagetest.OneOrganization(t, r, "acme", want, 4, "ri\x00val")
		})
	}
}
