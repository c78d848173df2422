package mongodb

import (
	"sync"
	"testing"

	"writ.example/writ/storage"
)

// TestBarrier_Marks checks after which updates Barrier needs a mark. An update that wrote nothing, or only bookkeeping,
// has no row of changes, and may have found a change that this handle has not heard. A later own row covers it.
func TestBarrier_Marks(t *testing.T) {
	s := openTest(t, newDatabase(t, sharedSet(t)))
	w := &s.watchers
	nothing := func(storage.Tx) error { return nil }
	bookkeeping := func(tx storage.Tx) error { return storage.AllCounts.Put(tx, "org", &storage.Counts{}) }
	for name, f := range map[string]func(storage.Tx) error{"nothing": nothing, "bookkeeping": bookkeeping} {
		before := updateRule(t, s)
		own := w.own.Load()
		if is, err := s.Update(t.Context(), "org", f); err != nil || is != 0 && is <= before {
			t.Fatalf("Update that writes %s = %d, %v", name, is, err)
		}
		must(t, s.Barrier(t.Context()))
		if !w.own.Load().After(*own) {
			t.Errorf("Barrier has written no mark after an update that wrote %s", name)
		}
		_, err := s.Update(t.Context(), "org", f)
		must(t, err)
		updateRule(t, s)
		own = w.own.Load()
		must(t, s.Barrier(t.Context()))
		if w.own.Load() != own {
			t.Errorf("Barrier has written a mark, although a later row has covered the update that wrote %s", name)
		}
	}
}

// TestMark_ByManyAtOnce checks that each of many marks of a new database is heard by its writer.
func TestMark_ByManyAtOnce(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	var all sync.WaitGroup
	for range 3 {
		s := openTest(t, o)
		_, err := s.db.Collection(changesName).DeleteMany(t.Context(), doc())
		must(t, err)
		for range 20 {
			all.Go(func() {
				if err := s.mark(t.Context()); err != nil {
					t.Errorf("mark = %v", err)
				}
			})
		}
	}
	all.Wait()
}
