//go:build !race

package ledger

import (
	"testing"

	"writ/engine"
)

func TestProject_Allocations(t *testing.T) {
	l := open(t, newFake())
	turn, err := l.Begin(t.Context(), "acme", plenty)
	if err != nil {
		t.Fatal(err)
	}
	defer turn.End()
	e := entry(intent(1), engine.Allow)
	e.Intent.Resource = "https://example.com/prod/web"
	// The record, its id, three digests, the reasons and the metadata's keys.
	if got := testing.AllocsPerRun(100, func() {
		r, err := project(&l.cfg, &turn, e)
		if err != nil {
			t.Fatal(err)
		}
		r.Receipt.LeafHash()
	}); got > 7 {
		t.Errorf("projecting a decision allocates %v times, want at most 7", got)
	}
	if got := testing.AllocsPerRun(100, func() {
		turn, err := l.Begin(t.Context(), "acme", plenty)
		if err != nil {
			t.Fatal(err)
		}
		turn.End()
	}); got != 0 {
		t.Errorf("a turn allocates %v times, want never", got)
	}
}
