package admission

import (
	"fmt"
	"testing"
)

// Of 10,000 that wait for something else than a slot an organization has its share, all have
// theirs, no slot is taken, and who has gone leaves a place.
func TestGate_ParksSoManyAndNoMore(t *testing.T) {
	g := newTestGate(1)
	parked := map[string]int{}
	var all []func()
	for i := range 10_000 {
		org := fmt.Sprint("org", i%8)
		if i < 1_000 {
			org = "greedy"
		}
		unpark, v := g.Park(org)
		if v == Admitted {
			parked[org]++
		}
		all = append(all, unpark) // of what was refused, too
	}
	total := 0
	for org, n := range parked {
		if total += n; n > maxWaiting/4 {
			t.Errorf("%s has %d parked, want at most %d", org, n, maxWaiting/4)
		}
	}
	if parked["greedy"] != maxWaiting/4 || total > maxWaiting || len(parked) != 9 {
		t.Errorf("parked %v, %d in all, want %d of greedy, at most %d in all, and some of each", parked, total, maxWaiting/4, maxWaiting)
	}
	unpark, v := g.Park("late")
	if all = append(all, unpark); v != Admitted {
		t.Errorf("Park = %d of an organization that comes when all others have what they can, want Admitted", v)
	}
	slot := enter(t, g, Work{Org: "greedy"})
	slot.Leave()
	for _, unpark := range all {
		unpark()
		unpark()
	}
	if len(g.parked) != 0 || g.parkedInAll != 0 {
		t.Errorf("once all have gone %v are parked, %d in all", g.parked, g.parkedInAll)
	}
	if _, v := g.Park("greedy"); v != Admitted {
		t.Errorf("Park = %d once all have gone", v)
	}
}
