package lease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
	"writ.example/writ/storage/storagetest"
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

// replica is a pool on a handle of a store. It knows how many places the pool holds.
type replica struct {
	*lease.Pool
	t      *testing.T
	handle storagetest.Replica
	lease  *lease.Lease
	stop   func()

	mu    sync.Mutex
	asked int       // the calls of Count
	held  int64     // places that nobody has taken
	took  time.Time // when a place was last taken
}

// Count implements lease.Store.
func (r *replica) Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	got, err := r.handle.Count(ctx, w, ask)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	for _, back := range ask.Back {
		r.held -= back.N
	}
	r.held += got.N
	return got, err
}

// take takes a place within limit. A refusal is an error while another replica has places that nobody has
// used for longer than two seconds.
func (r *replica) take(limit int64, all []*replica) bool {
	r.t.Helper()
	r.Lock()
	_, ok, err := r.Take(r.t.Context(), nil, r.lease, time.Now(), 202611, limit, 1)
	r.Unlock()
	if err != nil {
		r.t.Errorf("Take = %v", err)
	}
	r.mu.Lock()
	if r.took = time.Now(); ok {
		r.held--
	}
	r.mu.Unlock()
	for _, other := range all {
		if other == r || ok {
			continue
		}
		other.mu.Lock()
		if idle := time.Since(other.took); other.held > 0 && idle > 2*time.Second {
			r.t.Errorf("refused while another holds %d places that are idle for %v", other.held, idle)
		}
		other.mu.Unlock()
	}
	return ok
}

// openReplicas returns three replicas on one store.
func openReplicas(t *testing.T) (all []*replica, m *storagetest.Memory) {
	m = storagetest.NewMemory()
	for range 3 {
		r := &replica{t: t, handle: m.OpenHandle(t), lease: lease.New(storage.Window{Org: "org", Month: 202611}, 50), took: time.Now()}
		r.Pool = lease.NewPool(r)
		r.Scarce = r.handle.Scarce
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx, func() {})
		}()
		r.stop = func() { cancel(); <-done }
		all = append(all, r)
	}
	return all, m
}

// TestPool_PlacesOfAQuietOrganizationStay checks that decisions every two seconds far from the limit cost
// a request in minutes, and that the places come back afterwards.
func TestPool_PlacesOfAQuietOrganizationStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := openReplicas(t)
		for range 100 {
			for _, r := range all {
				if !r.take(10_000, all) {
					t.Fatal("refused far from the limit")
				}
			}
			time.Sleep(2 * time.Second)
		}
		for i, r := range all {
			r.mu.Lock()
			if r.asked > 3 {
				t.Errorf("replica %d asked %d times for 100 decisions in 200s, want 3 times at most", i, r.asked)
			}
			r.mu.Unlock()
		}
		time.Sleep(6 * time.Minute)
		for i, r := range all {
			r.mu.Lock()
			if r.held != 0 {
				t.Errorf("replica %d holds %d places that are idle for six minutes, want none", i, r.held)
			}
			r.mu.Unlock()
			r.stop()
		}
	})
}

// TestPool_ExactlyTheLimitOverReplicas lets three replicas take places at random times, fast and slowly.
func TestPool_ExactlyTheLimitOverReplicas(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			all, _ := openReplicas(t)
			random := rand.New(rand.NewPCG(seed, 0))
			limit, pause := []int64{1, 7, 60, 1000, 3000}[seed%5], time.Duration(seed/5+1)*time.Second/2
			took := int64(0)
			for refused := 0; refused < 100; {
				if all[random.IntN(3)].take(limit, all) {
					took++
					refused = 0
				} else {
					refused++
				}
				if random.IntN(4) == 0 {
					time.Sleep(time.Duration(random.Int64N(int64(pause))))
				}
			}
			if took != limit {
				t.Errorf("seed %d: %d places were taken of %d", seed, took, limit)
			}
			for _, r := range all {
				r.stop()
			}
		})
	}
}

// TestPool_IdlePlacesOfAnotherAreWaitedFor checks that a replica that reaches the limit at once gets the
// places that another has kept for a long time, and those of one that has died.
func TestPool_IdlePlacesOfAnotherAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2000
		all, m := openReplicas(t)
		for _, quiet := range all[1:] {
			if !quiet.take(limit, all) {
				t.Fatal("refused far from the limit")
			}
		}
		all[2].stop()
		if all[2].held != 0 {
			t.Fatalf("a pool that was stopped holds %d places", all[2].held)
		}
		time.Sleep(time.Minute)
		if all[1].held == 0 {
			t.Fatal("the places of a quiet organization were given back within a minute")
		}
		// The third replica dies with these places.
		if got, err := storagetest.Grant(t.Context(), all[2].handle, "org", 202611, limit, 40); got != 40 || err != nil {
			t.Fatalf("Grant = %d, %v", got, err)
		}
		took := 0
		for all[0].take(limit, all) {
			took++
		}
		if took != limit-2-40 {
			t.Errorf("%d places were taken, want all but two that are used and 40 of another", took)
		}
		m.TakeOver(t, all[2].handle)
		time.Sleep(time.Second)
		for all[0].take(limit, all) {
			took++
		}
		if took != limit-1 { // the place that the dead one had taken is free, too: nothing was appended
			t.Errorf("%d places were taken after another has died, want %d", took, limit-1)
		}
		all[0].stop()
		all[1].stop()
	})
}
