package embedded

import (
	"testing"

	"writ/storage/storagetest"
)

// TestReadOnly_OneOrganization reads what an export does.
func TestReadOnly_OneOrganization(t *testing.T) {
	w := writeHistory(t)
	r, err := OpenReadOnly("data", Options{FS: w.disk})
	must(t, err)
	defer r.Close()
	storagetest.OneOrganization(t, r, "acme", w.acme, 4, "rival")
}
