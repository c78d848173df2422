package embedded

import (
	"testing"

	"writ.example/writ/storage/storagetest"
)

// TestReadOnly_OneOrganization checks that ReadOnly returns all data that an export of one
// organization reads.
func TestReadOnly_OneOrganization(t *testing.T) {
	w := writeHistory(t)
	readClosed(t, w.disk, func(r *ReadOnly) { storagetest.OneOrganization(t, r, "acme", w.acme, 4, "rival") })
}
