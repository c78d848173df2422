package embedded

import (
	"errors"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestDecided_TellsOnlyOfWhatIsDurable checks that Decided returns only durable records. Other
// methods may return a record before its sync has ended.
func TestDecided_TellsOnlyOfWhatIsDurable(t *testing.T) {
	var synced atomic.Int64
	slow := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isSync(op) && filepath.Ext(op.Path) == ".segment" {
			for range 1000 {
				runtime.Gosched()
			}
			synced.Add(1)
		}
		return nil
	}))
	s := openTest(t, slow, nil)
	w := storagetest.NewWriter()
	for range 20 {
		r, before := w.Record("a"), synced.Load()
		committed := make(chan error, 1)
		go func() {
			_, err := w.Commit(t.Context(), s, r)
			committed <- err
		}()
		err := storage.ErrNotFound
		for errors.Is(err, storage.ErrNotFound) {
			runtime.Gosched()
			_, err = s.Decided(t.Context(), r.OrganizationID, r.IntentID, "")
		}
		if err != nil || synced.Load() == before {
			t.Errorf("Decided = %v after %d syncs, want nil after one", err, synced.Load()-before)
		}
		must(t, <-committed)
	}
}
