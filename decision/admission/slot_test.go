package admission

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlot_IsNotHeldByWhoWaits checks a store that does not answer. Only the work that waits for
// the store stops. This work holds no slot, so other work of any organization gets the slot. When
// the store answers, the stopped work waits for a slot again.
func TestSlot_IsNotHeldByWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		stuck := enter(t, g, Work{Org: "a"})
		if !stuck.Pause() || stuck.Pause() {
			t.Error("Pause, twice = false or true, want true and false")
		}
		for i := range 40 {
			l.work(fmt.Sprint("a", i), Work{Org: "a"}, 1, slice)
			l.work(fmt.Sprint("b", i), Work{Org: "b"}, 1, slice)
		}
		time.Sleep(time.Second) // the store does not answer
		if served, refused := l.outcome(); len(served) != 80 || len(refused) != 0 {
			t.Errorf("%d served and %d refused while one waits, want 80 and none", len(served), len(refused))
		}
		if took := stuck.Yield(); took != 0 {
			t.Errorf("Yield without a slot took %v", took)
		}
		other := enter(t, g, Work{Org: "b"})
		back := make(chan time.Duration)
		go func() {
			began := time.Now()
			if !stuck.Resume() || stuck.Resume() {
				t.Error("Resume, twice = false or true, want true and false")
			}
			back <- time.Since(began)
		}()
		time.Sleep(10 * slice)
		other.Leave()
		if took := <-back; took != 10*slice {
			t.Errorf("Resume took %v, want %v: until the slot was free", took, 10*slice)
		}
		if g.working() != 1 || g.paused != 0 {
			t.Errorf("at work %d, paused %d, want 1 and none", g.working(), g.paused)
		}
		stuck.Leave()
		wantIdle(t, g)
	})
}

// TestSlot_IsKeptByWhoRuns checks that work without a pause keeps its slot, however long it runs.
func TestSlot_IsKeptByWhoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		s := enter(t, g, Work{Org: "a"})
		l.wait("b", Work{Org: "b", Patient: true})
		time.Sleep(time.Second)
		if s.Resume() { // it was not paused
			t.Error("Resume without a Pause = true")
		}
		if got := l.order(); len(got) != 0 {
			t.Errorf("%v got a slot that was in use", got)
		}
		s.Leave()
		l.drain(constant(0))
		if got := strings.Join(l.order(), " "); got != "b" {
			t.Errorf("served %q, want b", got)
		}
	})
}

// TestSlot_LeavesWithoutOne checks Leave during a pause. The paused work must free its place.
func TestSlot_LeavesWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		s := enter(t, g, Work{Org: "a", Costly: true})
		s.Pause()
		l.wait("b", Work{Org: "b"})
		s.Leave()
		s.Leave()
		if g.working() != 1 || g.paused != 0 || g.costlyWorking != 0 {
			t.Errorf("at work %d, paused %d, costly %d, want 1 of b and none", g.working(), g.paused, g.costlyWorking)
		}
		l.drain(constant(0))
		var none *Slot
		if none.Pause() || none.Resume() {
			t.Error("Pause or Resume without a slot = true")
		}
		wantIdle(t, g)
	})
}

// TestSlot_GoesToWhatTheOthersWaitFor checks the bound of paused work. An organization may have as
// much paused work as it may have waiting work. At this bound its new work is refused at once. If
// all of its paused work waits for other work of the organization, that other work gets the next
// slot. Meanwhile other organizations are served.
func TestSlot_GoesToWhatTheOthersWaitFor(t *testing.T) {
	for slots := 1; slots <= 2; slots++ {
		synctest.Test(t, func(t *testing.T) {
			g := newTestGate(slots)
			l := newLine(t, g)
			answered, loaded := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			wait := func(then <-chan struct{}, after func()) {
				s := enter(t, g, Work{Org: "a"})
				s.Pause()
				all.Go(func() {
					<-then
					s.Resume()
					after()
					s.Leave()
				})
			}
			wait(answered, func() { close(loaded) })
			for range maxWaiting/4 - 1 {
				wait(loaded, func() {})
			}
			if g.paused != maxWaiting/4 || g.working() != 0 {
				t.Errorf("paused %d, at work %d, want %d and none", g.paused, g.working(), maxWaiting/4)
			}
			if _, v := g.Enter(t.Context(), Work{Org: "a"}); v != QueueFull {
				t.Errorf("Enter = %d where as much is paused as may be, want QueueFull", v)
			}
			l.work("c", Work{Org: "c"}, 3, slice)
			time.Sleep(4 * slice)
			if served, refused := l.outcome(); len(served) != 3 {
				t.Errorf("of another organization %d were served and %v refused, want 3 and none", len(served), refused)
			}
			began := time.Now()
			close(answered)
			<-loaded
			if took := time.Since(began); took > slice {
				t.Errorf("with %d slots it was loaded %v after the store had answered", slots, took)
			}
			all.Wait()
			wantIdle(t, g)
		})
	}
}

// TestSlot_ComesBackInTheOrderOfArrival checks the place of resumed work: before later arrivals,
// and after work that has begun.
func TestSlot_ComesBackInTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		loads := enter(t, g, Work{Org: "a"})
		loads.Pause()
		l.work("long", Work{Org: "a"}, 3, slice)
		for i := range 3 {
			l.work(fmt.Sprint("later", i), Work{Org: "a"}, 1, slice)
		}
		go func() {
			loads.Resume()
			l.mu.Lock()
			l.served = append(l.served, "loads")
			l.mu.Unlock()
			loads.Leave()
		}()
		time.Sleep(time.Second)
		if got, want := strings.Join(l.order(), " "), "long long long loads later0 later1 later2"; got != want {
			t.Errorf("served %s, want %s", got, want)
		}
		wantIdle(t, g)
	})
}

// TestSlot_HoldsItsBoundsUnderRace checks that there is never more running work than slots, while
// work pauses, resumes and yields in any order.
func TestSlot_HoldsItsBoundsUnderRace(t *testing.T) {
	const slots = 2
	g := newTestGate(slots)
	var wg, mu = sync.WaitGroup{}, sync.Mutex{}
	running, most := 0, 0
	run := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		running += n
		most = max(most, running)
	}
	for i := range 32 {
		wg.Go(func() {
			for n := range 100 {
				s, v := g.Enter(t.Context(), Work{Org: fmt.Sprint(i % 5), Patient: true})
				if v != Admitted {
					t.Errorf("verdict %d, want Admitted", v)
				}
				s.Pause()
				if n%8 == 0 {
					time.Sleep(slice * time.Duration(n%4))
				}
				s.Resume()
				run(1)
				run(-1)
				s.Yield()
				run(1)
				run(-1)
				s.Leave()
			}
		})
	}
	wg.Wait()
	if most > slots {
		t.Errorf("%d ran at once, want at most %d", most, slots)
	}
	wantIdle(t, g)
}
