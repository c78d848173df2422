package embedded

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestDecision_Plans_PlacesAfterARestart checks the meters after a restart. Decisions must count.
// Places that were granted but not used must not count.
func TestDecision_Plans_PlacesAfterARestart(t *testing.T) {
	const month = storage.Month(202611)
	fs, w := vfs.NewMem(), storagetest.NewWriter()
	s := openTest(t, fs, nil)
	grant := func(s *Store, want int64) {
		t.Helper()
		if got, err := storagetest.Grant(t.Context(), s, "org", month, 5, 100); got != want || err != nil {
			t.Errorf("Grant = %d, %v, want %d", got, err, want)
		}
	}
	// The store granted no places for these records.
	commit(t, s, w, w.Record("org"), w.Record("org"))
	grant(s, 3)
	if err := storagetest.Return(t.Context(), s, "org", month, 4); err == nil || !strings.Contains(err.Error(), "of which 3 are held") {
		t.Errorf("Return of more than are held = %v, want an error", err)
	}
	closeTest(t, s)
	grant(openTest(t, fs, nil), 3)
}

// TestQuotas_Bounded checks that meters without granted places are dropped from memory, and read
// again when needed.
func TestQuotas_Bounded(t *testing.T) {
	const month = storage.Month(202611)
	s, w := openTest(t, vfs.NewMem(), nil), storagetest.NewWriter()
	commit(t, s, w, w.Record("used"))
	for i := range 3 * maxMeters {
		org := fmt.Sprint("idle-", i)
		if _, err := storagetest.Grant(t.Context(), s, org, month, 1, 1); err != nil {
			t.Fatal(err)
		}
		must(t, storagetest.Return(t.Context(), s, org, month, 1))
	}
	kept := 0
	for i := range s.quotas {
		kept += len(s.quotas[i].byKey)
	}
	if kept > maxMeters {
		t.Errorf("%d meters are kept, want at most %d", kept, maxMeters)
	}
	if got, err := storagetest.Grant(t.Context(), s, "used", month, 3, 100); got != 2 || err != nil {
		t.Errorf("Grant = %d, %v, want 2: one is decided", got, err)
	}
}
