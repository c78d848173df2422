package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
)

// hanging is a store that grants places for the first request. It answers no later request.
type hanging struct{ asked chan struct{} }

func (h hanging) Count(_ context.Context, _ storage.Window, ask storage.Ask) (storage.Granted, error) {
	h.asked <- struct{}{}
	return storage.Granted{N: ask.Want, At: ask.At}, nil
}

func TestPool_StopOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hanging{make(chan struct{}, 1)}
		p := lease.NewPool(h)
		var lost error
		p.Lost = func(err error) { lost = err }
		l := lease.New(storage.Window{Org: "org", Month: 202611}, 8)
		p.Lock()
		if _, ok, err := p.Take(t.Context(), nil, l, time.Now(), 202611, 100, 1); !ok || err != nil {
			t.Fatalf("Take = %v, %v", ok, err)
		}
		p.Unlock()
		began := time.Now()
		p.Stop(t.Context())
		if took := time.Since(began); took != 5*time.Second || !errors.Is(lost, context.DeadlineExceeded) {
			t.Errorf("Stop took %v and told of %v, want 5s and %v", took, lost, context.DeadlineExceeded)
		}
		<-h.asked // delays the answer
	})
}
