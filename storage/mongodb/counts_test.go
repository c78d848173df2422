package mongodb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestCounts_AreMovedToRows checks that the counter of a chain keeps a bounded number of counts, that none of them is
// of an earlier day, and that none is left when all are moved. The counts are those of a scan each time.
func TestCounts_AreMovedToRows(t *testing.T) {
	s, w, n := openTest(t, newDatabase(t, sharedSet(t))), storagetest.NewWriter(), uint32(0)
	later := time.Now().Add(24 * time.Hour)
	commit := func(records int, at time.Time) {
		t.Helper()
		batch := make([]*storage.Record, records)
		for i := range batch {
			n++
			id := storage.IDAt(at)
			id[6], id[8] = 0x70, 0x80 // version 7
			binary.BigEndian.PutUint32(id[12:], n)
			batch[i] = w.Record("org", func(r *storage.Record) {
				r.DecidedAt, r.DecisionID = at, id.String()
				r.AgentID, r.ActionType = fmt.Sprint("agent-", n), fmt.Sprint("action-", n)
			})
		}
		_, err := w.Commit(t.Context(), s, batch...)
		must(t, err)
	}
	count := func(all bool) (kept hourSums, rows int64) {
		t.Helper()
		must(t, s.countChain(t.Context(), s.slot.chain, all))
		counter, err := s.counted(t.Context(), s.slot.chain)
		must(t, err)
		kept = make(hourSums)
		must(t, kept.add(counter.Counts))
		rows, err = s.countRows().CountDocuments(t.Context(), doc())
		must(t, err)
		storagetest.CheckCounts(t, s, "org")
		return kept, rows
	}
	commit(10, later)
	if kept, rows := count(false); len(kept) < 20 || rows > 0 {
		t.Errorf("of 10 records: %d counts are kept and %d in rows, want at least 20 and none", len(kept), rows)
	}
	commit(5, later.Add(-48*time.Hour))
	for range 7 {
		commit(1000, later)
	}
	kept, rows := count(false)
	if len(kept) != keptCounts || rows < movedCounts {
		t.Errorf("%d counts are kept and %d in rows, want %d and at least %d", len(kept), rows, keptCounts, movedCounts)
	}
	for k := range kept {
		if k.day < storage.DayOf(time.Now()) {
			t.Errorf("a count of an earlier day is kept: %+v", k)
		}
	}
	if kept, _ := count(true); len(kept) > 0 {
		t.Errorf("%d counts are kept when all are moved", len(kept))
	}
	commit(3, later)
	if _, err := s.RemoveRecords(t.Context(), "org", later.Add(time.Hour), storage.Expired{Records: 100}); err != nil {
		t.Fatal(err)
	}
	count(false)
}

// TestPack checks that counts are what was packed, and that broken ones are refused.
func TestPack(t *testing.T) {
	sums := hourSums{
		{"org", "deploy", storage.CountedByAction, 20000, 23}: 1 << 40,
		{"org", "", storage.CountedByAgent, -1, 0}:            -3,
		{"other", "a\x00ä", storage.CountedByRule, 0, 1}:      1,
		{"", "allow", storage.CountedByDecision, 1, 2}:        2,
	}
	packed := sums.pack()
	got := make(hourSums)
	if err := got.add(packed); err != nil || !maps.Equal(got, sums) {
		t.Errorf("the counts of %x are %v, %v, want %v", packed, got, err, sums)
	}
	one := hourSums{{"org", "deploy", storage.CountedByAction, 20000, 23}: 1}.pack()
	for n := range len(one) {
		whole := n == 0 || n == 5 // nothing, or an organization without counts
		if err := make(hourSums).add(one[:n]); (err == nil) != whole || err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("the first %d bytes of %x: %v", n, one, err)
		}
	}
	hour := hourSums{{"org", "deploy", storage.CountedByAction, 20000, 24}: 1}.pack()
	if err := make(hourSums).add(hour); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("hour 24: %v, want that it is refused", err)
	}
}
