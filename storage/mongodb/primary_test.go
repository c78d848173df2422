package mongodb

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestOpen_WaitsForAPrimary checks Open on a replica set without a primary. If no primary is
// elected, or no member runs, Open must fail after its timeout. If a primary is elected in time,
// Open must succeed.
func TestOpen_WaitsForAPrimary(t *testing.T) {
	set := sharedThree(t)
	o := newDatabase(t, set)
	primary, err := set.Primary(t.Context())
	must(t, err)
	others := []int{(primary + 1) % 3, (primary + 2) % 3}
	for _, i := range others {
		must(t, set.Kill(i))
	}
	refused := func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := Open(ctx, o)
		if err == nil || !strings.Contains(err.Error(), "had no primary") || !strings.Contains(err.Error(), "start a majority") || time.Since(began) < 3*time.Second {
			t.Errorf("Open after %v = %v, want that there was no primary for as long as it may wait", time.Since(began), err)
		}
	}
	t.Run("the primary steps down meanwhile", refused)
	must(t, set.Kill(primary))
	t.Run("all members are stopped", refused)
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), o)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	for _, i := range others {
		must(t, set.Restart(i))
	}
	if err := <-opened; err != nil {
		t.Errorf("Open while the set starts = %v", err)
	}
	must(t, set.Restart(primary))
}
