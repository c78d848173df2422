//go:build !race

package ledger

import (
	"testing"

	"writ.example/writ/engine"
)

func TestProject_Allocations(t *testing.T) {
	l := open(t, newFake())
	reservation, err := l.Reserve(t.Context(), nil, "acme", plenty)
	must(t, err)
	defer reservation.Release()
	e := entry(intent(1), engine.Allow)
	e.Reservation = reservation
	e.Intent.Resource = "https://example.com/prod/web"
	// These are the allocations for the record, its id and digests, the reasons, the metadata's
	// keys, the findings and the names of what is left out.
	if got := testing.AllocsPerRun(100, func() {
		r, err := project(&l.cfg, &e)
		must(t, err)
		r.Receipt.LeafHash()
	}); got > 6 {
		t.Errorf("projecting a decision allocates %v times, want at most 6", got)
	}
	if got := testing.AllocsPerRun(100, func() {
		reservation, err := l.Reserve(t.Context(), nil, "acme", plenty)
		must(t, err)
		reservation.Release()
	}); got != 0 {
		t.Errorf("a reservation allocates %v times, want never", got)
	}
}
