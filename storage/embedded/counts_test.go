package embedded

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestCounts_OfRemovedRowsLeaveNothing checks that retention deletes the keys of counts that are 0,
// and that counts are the same before and after the keys have moved to Pebble.
func TestCounts_OfRemovedRowsLeaveNothing(t *testing.T) {
	disk, w := vfs.NewMem(), storagetest.NewWriter()
	s := openTest(t, disk, nil)
	keys := func() (n int) {
		must(t, s.scanKind(t.Context(), kindCount, func(string, []byte, []byte) error {
			n++
			return nil
		}))
		return n
	}
	for range 20 {
		_, err := w.Commit(t.Context(), s, w.Record("a"), w.Record("b"))
		must(t, err)
		storagetest.CheckCounts(t, s, "a", "b")
		must(t, s.keepNow())
	}
	storagetest.CheckCounts(t, s, "a", "b")
	before := keys()
	after := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for more := true; more; {
		n, err := s.RemoveRecords(t.Context(), "a", after, storage.Expired{Records: 3})
		must(t, err)
		storagetest.CheckCounts(t, s, "a", "b")
		more = n.Records > 0
	}
	if left := keys(); before == 0 || left != before/2 {
		t.Errorf("%d of %d keys of counts are left, want those of one of two organizations", left, before)
	}
	closeTest(t, s)
	storagetest.CheckCounts(t, openTest(t, disk, nil), "a", "b")
}

// TestCounts_AreMergedOncePerKey checks that a batch writes one addition for each key, however many rows
// it counts: Pebble keeps each until it compacts the key, and every read adds them.
func TestCounts_AreMergedOncePerKey(t *testing.T) {
	w := storagetest.NewWriter()
	s := openTest(t, vfs.NewMem(), nil)
	b := s.newBatch()
	const rows = 1000
	r := w.Record("a")
	values := uint32(0)
	r.Counted(func(storage.CountedBy, string, storage.Day, int) { values++ })
	for range rows {
		b.count(r, -1)
	}
	s.mergeCounts(b)
	if n := b.b.Count(); values == 0 || n != values || b.err != nil {
		t.Errorf("%d rows of %d values are %d writes, %v", rows, values, n, b.err)
	}
	b.count(r, -1)
	b.reset()
	s.mergeCounts(b)
	if n := b.b.Count(); n != 0 {
		t.Errorf("a batch that was reset has %d writes", n)
	}
}

// TestCounts_OfManyOrganizationsArePending checks that the counts of 1,000 organizations stay pending, so that commits do
// not wait for Pebble again and again. The counts of 2,000 organizations are written.
func TestCounts_OfManyOrganizationsArePending(t *testing.T) {
	s, w := openTest(t, vfs.NewMem(), nil), storagetest.NewWriter()
	alike := func(r *storage.Record) { r.Decision, r.Findings = engine.Allow, nil }
	decide := func(organizations int) {
		t.Helper()
		for n := range organizations {
			commit(t, s, w, w.Record(fmt.Sprint("org-", n), alike))
		}
	}
	decide(1000)
	decide(1000)
	if s.kept != 0 {
		t.Errorf("what follows from the first %d frames is in Pebble already", s.kept)
	}
	decide(2000)
	if s.kept == 0 {
		t.Error("nothing is in Pebble")
	}
	storagetest.CheckCounts(t, s, "org-0", "org-999", "org-1999")
}

// TestCounts_Compacted compacts counts between removals, so that what is subtracted meets a base in the last level.
func TestCounts_Compacted(t *testing.T) {
	s, w := openTest(t, vfs.NewMem(), nil), storagetest.NewWriter()
	compact := func() {
		t.Helper()
		must(t, errors.Join(s.keepNow(), s.db.Flush(), s.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false)))
		storagetest.CheckCounts(t, s, "a", "b")
	}
	for range 2 {
		for range 6 {
			commit(t, s, w, w.Record("a"), w.Record("b"))
		}
		compact()
		removeRows(t, s, "a", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 3)
		compact()
		removeRows(t, s, "a", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 3)
		compact()
	}
}
