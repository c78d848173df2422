package embedded

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestRemoveRecords_SettledMeanwhile commits a settlement while a removal reads the rows. The settlement
// must be removed with its row.
func TestRemoveRecords_SettledMeanwhile(t *testing.T) {
	w := storagetest.NewWriter()
	var s *Store
	row := w.Record("a")
	settled := storage.Settlement{Outcome: storage.Executed, RecordedAt: row.DecidedAt}
	var armed atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if filepath.Ext(op.Path) == ".segment" && op.Kind == errorfs.OpFileReadAt && armed.CompareAndSwap(true, false) {
			_, err := w.Settle(t.Context(), s, row, settled)
			return err
		}
		return nil
	}))
	s = openTest(t, disk, nil)
	commit(t, s, w, row)
	armed.Store(true)
	n, err := s.RemoveRecords(t.Context(), "a", row.DecidedAt.AddDate(1, 0, 0), storage.Expired{Records: 10, Settled: 10})
	if want := (storage.Expired{Records: 1, Settled: 1}); n != want || armed.Load() || err != nil {
		t.Errorf("RemoveRecords = %+v, %v, want %+v", n, err, want)
	}
	if rows := listed(t, s, "a"); len(rows) > 0 {
		t.Errorf("ListRecords = %d rows, want none", len(rows))
	}
}
