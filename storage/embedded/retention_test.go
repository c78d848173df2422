package embedded

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestRemoveRecords_SettledMeanwhile commits a settlement while a removal moves keys to Pebble. The
// settlement must be removed with its row.
func TestRemoveRecords_SettledMeanwhile(t *testing.T) {
	w := storagetest.NewWriter()
	var s *Store
	row := w.Record("a")
	settled := storage.Settlement{Outcome: storage.Executed, RecordedAt: row.DecidedAt}
	var armed atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if filepath.Ext(op.Path) == ".log" && armed.CompareAndSwap(true, false) {
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
	if _, err := s.index.Get(settlementKey("a", idOf(row))); err == nil {
		t.Error("the settlement stays without its row")
	}
}

// TestCountExpired_Orphans checks settlements without a row. If the row's tombstone has the leaf of
// the settlement, CountExpired removes the settlement. Otherwise the settlement is damage.
func TestCountExpired_Orphans(t *testing.T) {
	log, w := new(logged), storagetest.NewWriter()
	s := openTest(t, vfs.NewMem(), log)
	rows := []*storage.Record{w.Record("a"), w.Record("a"), w.Record("a")}
	commit(t, s, w, rows...)
	places := make([][]byte, len(rows))
	for i, row := range rows {
		execute(t, s, w, row)
		var err error
		if places[i], err = s.index.Get(settlementKey("a", idOf(row))); err != nil {
			t.Fatal(err)
		}
	}
	before := rows[0].DecidedAt.AddDate(1, 0, 0)
	remove := func(want storage.Expired) {
		t.Helper()
		if n, err := s.RemoveRecords(t.Context(), "a", before, want); n != want || err != nil {
			t.Fatalf("RemoveRecords = %+v, %v, want %+v", n, err, want)
		}
	}
	count := func(want storage.Expired) {
		t.Helper()
		if n, err := s.CountExpired(t.Context(), "a", before, 10); n != want || err != nil {
			t.Errorf("CountExpired = %+v, %v, want %+v", n, err, want)
		}
	}
	const line = "settlements were left behind"
	remove(storage.Expired{Records: 1, Settled: 1})
	put(t, s, settlementKey("a", idOf(rows[0])), places[0])
	count(storage.Expired{Records: 2, Settled: 2})
	count(storage.Expired{Records: 2, Settled: 2})
	if n := strings.Count(log.buf.String(), line); n != 1 {
		t.Errorf("%d lines tell of what was left behind, want 1:\n%s", n, log.buf.String())
	}
	remove(storage.Expired{Records: 2, Settled: 2})
	put(t, s, settlementKey("a", idOf(rows[0])), places[0])
	count(storage.Expired{})
	if _, err := s.index.Get(settlementKey("a", idOf(rows[0]))); err == nil {
		t.Error("the settlement stays in an organization without rows")
	}
	put(t, s, settlementKey("a", idOf(rows[1])), places[2])
	count(storage.Expired{})
	if _, err := s.RemoveRecords(t.Context(), "a", before, storage.Expired{Records: 1, Settled: 1}); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("RemoveRecords = %v, want that a settlement has no row", err)
	}
}
