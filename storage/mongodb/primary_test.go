package mongodb

import (
	"context"
	"strings"
	"testing"
	"time"

	"writ/storage/mongodb/mongotest"
)

// TestOpen_WaitsForAPrimary opens a set without a primary, in vain where it gets
// none, then while it loses one, and again while it elects one.
func TestOpen_WaitsForAPrimary(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: waits for elections")
	}
	set := mongotest.For(t, 3)
	o := newDatabase(t, set)
	primary, err := set.Primary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	others := []int{(primary + 1) % 3, (primary + 2) % 3}
	for _, i := range others {
		if err := set.Kill(i); err != nil {
			t.Fatal(err)
		}
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
	if err := set.Kill(primary); err != nil {
		t.Fatal(err)
	}
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
		if err := set.Restart(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-opened; err != nil {
		t.Errorf("Open while the set starts = %v", err)
	}
}
