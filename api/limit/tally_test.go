package limit

import (
	"fmt"
	"testing"
)

// TestTally_HasSoManyUnderWayAndNoMore has 10,000 callers that ask for a place. No organization may
// get more than its share, and each must get some. Calling end twice must free only one place.
func TestTally_HasSoManyUnderWayAndNoMore(t *testing.T) {
	x := NewTally[string](2048, 512)
	under := map[string]int{}
	var ends []func()
	for i := range 10_000 {
		org := fmt.Sprint("org", i%8)
		if i < 1_000 {
			org = "greedy"
		}
		if end, ok := x.Begin(org); ok {
			under[org]++
			ends = append(ends, end)
		}
	}
	total := 0
	for org, n := range under {
		if total += n; n > 512 {
			t.Errorf("%s has %d under way, want at most 512", org, n)
		}
	}
	if under["greedy"] != 512 || total > 2048 || len(under) != 9 {
		t.Errorf("under way are %v, %d in all, want 512 of greedy, at most 2048 in all, and some of each", under, total)
	}
	end, ok := x.Begin("late")
	if !ok {
		t.Fatal("an organization that comes when all others have what they can finds no room")
	}
	for _, end := range append(ends, end) {
		end()
		end()
	}
	if len(x.byKey) != 0 || x.all != 0 {
		t.Errorf("once all have ended %v are under way, %d in all", x.byKey, x.all)
	}
	if _, ok := x.Begin("greedy"); !ok {
		t.Error("there is no room once all have ended")
	}
}
