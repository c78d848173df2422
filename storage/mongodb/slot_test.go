package mongodb

import (
	"errors"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// TestLeads_OnlyTheFirstSlot checks which of two handles leads. While both send heartbeats, the
// handle with the first slot leads. When that handle stops its heartbeats, the other handle leads.
func TestLeads_OnlyTheFirstSlot(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	first, second := openTest(t, o), openTest(t, o)
	for !first.maySettle() || !second.maySettle() {
		for _, s := range []*Store{first, second} {
			if leads := s.Leads(); leads && !s.maySettle() {
				t.Fatal("a handle leads while one that led before may still believe that it does")
			}
		}
		time.Sleep(time.Millisecond)
	}
	for _, s := range []*Store{first, second} {
		must(t, s.beatOnce(t.Context()))
	}
	if !first.Leads() || second.Leads() {
		t.Errorf("Leads of the first slot = %t, of the second %t", first.Leads(), second.Leads())
	}
	giveUpNow(t, second, first)
	must(t, second.beatOnce(t.Context()))
	if !second.Leads() {
		t.Error("nobody leads after the first is silent")
	}
}

// TestGrant_ByASlotThatMayHaveExpired checks that a handle renews a possibly expired slot before it
// gets places. A handle that was given up must get no places.
func TestGrant_ByASlotThatMayHaveExpired(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	late, other := openTest(t, o), openTest(t, o)
	late.slot.until.Store(0)
	if n, err := storagetest.Grant(t.Context(), late, "org", 202611, 10, 1); n != 1 || err != nil {
		t.Errorf("Grant by a handle that is late = %d, %v, want 1", n, err)
	}
	giveUpNow(t, other, late)
	if n, err := storagetest.Grant(t.Context(), late, "org", 202611, 10, 1); n != 0 || !errors.Is(err, errLost) {
		t.Errorf("Grant by a handle that was given up = %d, %v, want %v", n, err, errLost)
	}
	var row quotaRow
	if err := other.quotaRows().FindOne(t.Context(), doc()).Decode(&row); err != nil || len(row.Given) > 0 {
		t.Errorf("places that are given = %+v, %v, want none", row.Given, err)
	}
}

// TestRemoveSlots removes the slot of a dead handle. Its chain must still be found by all that reads chains. The
// slot must stay while it is not cleaned up, and while it was free for a shorter time.
func TestRemoveSlots(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, dead, w := openTest(t, o), openTest(t, o), storagetest.NewWriter()
	l := &load{T: t, writer: w, acknowledged: make(map[string]*storage.Record)}
	commit := func(s *Store) {
		t.Helper()
		r := w.Record("org-0")
		mustCommit(t, w, s, r)
		l.acknowledged[r.IntentID] = r
	}
	commit(a)
	commit(dead)
	tip, err := dead.Tip(t.Context())
	must(t, err)
	await(t, "the leader", a.Leads)
	dead.silence(t)
	a.counts.busy <- struct{}{} // so it can't clean up
	row := takeFrom(t, a, dead)
	kept := func(why string) {
		t.Helper()
		must(t, a.keepOnce(t.Context()))
		if n, err := a.slots().CountDocuments(t.Context(), doc("_id", dead.slot.id)); n != 1 || err != nil {
			t.Fatalf("the slot is gone: %s (%v)", why, err)
		}
	}
	old := func() {
		t.Helper()
		_, err := a.slots().UpdateMany(t.Context(), doc(), set(slotUntil, time.Now().Add(-freeFor-time.Minute)))
		must(t, err)
	}
	old()
	kept("it is not cleaned up")
	<-a.counts.busy
	settleNow(t, a, row)
	_, err = a.slots().UpdateMany(t.Context(), doc(), set(slotUntil, time.Now().Add(-freeFor+time.Hour)))
	must(t, err)
	kept("it was free for less than a day")

	old()
	must(t, a.keepOnce(t.Context()))
	if n, err := a.slots().CountDocuments(t.Context(), doc()); n != 1 || err != nil {
		t.Fatalf("%d slots remain, %v, want that of the live handle", n, err)
	}

	followed, err := a.Followed(t.Context())
	must(t, err)
	if len(followed) != 2 || followed[1] != tip {
		t.Errorf("Followed = %+v, want also %+v", followed, tip)
	}
	chains, metered := 0, int64(0)
	must(t, a.Chains(t.Context(), func(receipt.Chain) error { chains++; return nil }))
	if n, err := a.Metered(t.Context(), "org-0", 202611); chains != 2 || n != 2 || err != nil {
		t.Errorf("%d chains, Metered = %d, %v, want 2 and 2", chains, n, err)
	}
	l.check(a)
	if _, err := w.Commit(t.Context(), dead, w.Record("org-0")); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Append without a slot = %v, want %v", err, storage.ErrUnavailable)
	}
	next := openTest(t, o)
	if next.slot.chain == dead.slot.chain {
		t.Error("a new handle continues the chain of a slot that was removed")
	}
	commit(next)
	must(t, a.Barrier(t.Context()))
	l.check(a)
	r, err := OpenSnapshot(t.Context(), o)
	must(t, err)
	defer r.Close()
	chains = 0
	must(t, r.Chains(t.Context(), func(receipt.Chain) error { chains++; return nil }))
	meter := func(org string, _ storage.Month, n int64) error { metered = n; return nil }
	if err := a.checkMeters(t.Context(), meter); chains != 3 || metered != 3 || err != nil {
		t.Errorf("a snapshot has %d chains, and %d decisions are metered, %v, want 3 and 3", chains, metered, err)
	}
}
