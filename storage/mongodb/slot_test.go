package mongodb

import (
	"testing"
	"time"
)

// TestLeads_OnlyTheFirstSlot: of two handles that are both sure of their beats.
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
		if err := s.beatOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !first.Leads() || second.Leads() {
		t.Errorf("Leads of the first slot = %t, of the second %t", first.Leads(), second.Leads())
	}
	first.silence(t)
	if err := second.beatOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !second.Leads() {
		t.Error("nobody leads after the first is silent")
	}
}
