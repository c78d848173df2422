package embedded

import (
	"testing"

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
