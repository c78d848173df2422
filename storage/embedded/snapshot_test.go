package embedded

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage/storagetest"
)

// TestSnapshot_HasWhatTheStoreHad makes snapshots of a store that goes on. Each must open with what the store had, and
// must keep it while the store writes and removes.
func TestSnapshot_HasWhatTheStoreHad(t *testing.T) {
	fs := vfs.NewMem()
	w := storagetest.NewWriter()
	s := openTest(t, fs, nil)
	for run := range int64(4) {
		fill(t, s, w, 2*run+1)
		if run%2 == 1 {
			rotate(t, s)
		}
		want := look(t, s)
		copied := vfs.NewMem()
		must(t, s.Snapshot(t.Context(), func(_ context.Context, dir string, at Snapshot) error {
			fill(t, s, w, 2*run+2)
			if _, err := vfs.Clone(fs, copied, dir, "data"); err != nil {
				return err
			}
			return replaceFile(copied, tipName("data"), at.Text)
		}))
		restored := openTest(t, copied, nil)
		if diff := cmp.Diff(want, look(t, restored)); diff != "" {
			t.Errorf("run %d: -before +snapshot\n%s", run, diff)
		}
		closeTest(t, restored)
		if names, err := fs.List(""); err != nil || len(names) > 3 {
			t.Errorf("left beside the store: %q, %v", names, err)
		}
	}
	closeTest(t, s)
}
