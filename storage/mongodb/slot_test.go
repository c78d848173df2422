package mongodb

import (
	"errors"
	"testing"
	"time"

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
