package mongodb

import (
	"slices"
	"testing"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestSnapshot_OneOrganization checks the reads that an export of one organization makes.
func TestSnapshot_OneOrganization(t *testing.T) {
	w := writeHistory(t)
	want, _, err := w.s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 100})
	must(t, err)
	slices.Reverse(want)
	r, err := OpenSnapshot(t.Context(), w.Options)
	must(t, err)
	defer r.Close()
	storagetest.OneOrganization(t, r, "acme", want, 4, "ri\x00val")
}
