package admission

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A store that does not answer stops those who wait for it, and nobody else: their slots
// are others', of any organization, and those who come back wait for their turn.
func TestSlot_IsNotHeldByWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		stuck := enter(t, g, Work{Org: "a"})
		stuck.MayWait()
		stuck.MayWait() // once is enough
		for i := range 40 {
			l.work(fmt.Sprint("a", i), Work{Org: "a"}, 1, slice)
			l.work(fmt.Sprint("b", i), Work{Org: "b"}, 1, slice)
		}
		time.Sleep(time.Second) // the store is silent
		if served, refused := l.outcome(); len(served) != 80 || len(refused) != 0 {
			t.Errorf("%d served and %d refused while one waits, want 80 and none", len(served), len(refused))
		}
		other := enter(t, g, Work{Org: "b"})
		back := make(chan time.Duration)
		go func() {
			began := time.Now()
			stuck.Run()
			back <- time.Since(began)
		}()
		time.Sleep(10 * slice)
		other.Leave()
		if took := <-back; took != 10*slice {
			t.Errorf("Run took %v, want %v: until the slot was free", took, 10*slice)
		}
		if g.working() != 1 || g.away != 0 || stuck.queue.org.away != 0 {
			t.Errorf("at work %d, away %d, of the organization %d, want 1 and none", g.working(), g.away, stuck.queue.org.away)
		}
		stuck.Leave()
		if g.working() != 0 {
			t.Errorf("at work %d in the end, want none", g.working())
		}
	})
}

// Who runs keeps the slot, however long, and so does who waits for less than a slice or
// while nobody else wants it.
func TestSlot_IsKeptByWhoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		s := enter(t, g, Work{Org: "a"})
		s.Run() // as it does already
		s.MayWait()
		time.Sleep(time.Second) // nobody wants it
		s.Run()
		l.wait("b", Work{Org: "b"})
		for range 50 {
			time.Sleep(slice / 2)
			s.MayWait()
			s.Yield() // it need not: others take what they want
			time.Sleep(slice / 2)
			s.Run()
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

// Who has lost its slot and ends without another one has no place any more.
func TestSlot_LeavesWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		s := enter(t, g, Work{Org: "a", Costly: true})
		s.MayWait()
		l.wait("b", Work{Org: "b"})
		time.Sleep(3 * slice)
		s.Leave()
		s.Leave()
		if g.working() != 1 || g.away != 0 || g.costlyWorking != 0 {
			t.Errorf("at work %d, away %d, costly %d, want 1 of b and none", g.working(), g.away, g.costlyWorking)
		}
		l.drain(constant(0))
		var none *Slot
		none.MayWait()
		none.Run()
		if g.working() != 0 {
			t.Errorf("at work %d in the end, want none", g.working())
		}
	})
}

// Of an organization as much as may wait for slots may have lost them: then nothing new of it
// is begun, and what all of them wait for, which is its work, too, gets the next slot. Others
// are served meanwhile.
func TestSlot_GoesToWhatTheOthersWaitFor(t *testing.T) {
	for slots := 1; slots <= 2; slots++ {
		synctest.Test(t, func(t *testing.T) {
			g := newTestGate(slots)
			l := newLine(t, g)
			answered, loaded := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			wait := func(w Work, then <-chan struct{}, after func()) {
				all.Go(func() {
					w.Org, w.Patient = "a", true
					s, v := g.Enter(t.Context(), w)
					if v != Admitted {
						t.Errorf("verdict %d, want Admitted", v)
					}
					s.MayWait()
					<-then
					s.Run()
					after()
					s.Leave()
				})
			}
			wait(Work{}, answered, func() { close(loaded) })
			synctest.Wait()
			for i := range maxWaiting/4 + 40 {
				wait(Work{Kind: Kind(i % 2)}, loaded, func() {})
			}
			time.Sleep(4 * time.Second) // each loses its slot after a slice or two
			if g.away != maxWaiting/4 || len(g.free) != slots {
				t.Errorf("away %d, free %d, want %d and all", g.away, len(g.free), maxWaiting/4)
			}
			l.work("c", Work{Org: "c"}, 3, slice)
			time.Sleep(4 * slice)
			if served, refused := l.outcome(); len(served) != 3 {
				t.Errorf("of another organization %d were served and %v refused, want 3 and none", len(served), refused)
			}
			began := time.Now()
			close(answered)
			<-loaded
			if took := time.Since(began); took > 5*slice {
				t.Errorf("with %d slots it was loaded %v after the store had answered", slots, took)
			}
			all.Wait()
			if g.working() != 0 || g.away != 0 || g.waiting != 0 {
				t.Errorf("at work %d, away %d, waiting %d in the end, want none", g.working(), g.away, g.waiting)
			}
		})
	}
}

// The gate and the holder race for a slot, and one of them has it.
func TestSlot_IsTakenOrKept(t *testing.T) {
	const slots = 2
	g := newTestGate(slots)
	var wg, mu = sync.WaitGroup{}, sync.Mutex{}
	running, most := 0, 0
	for i := range 32 {
		wg.Go(func() {
			for n := range 100 {
				s, v := g.Enter(t.Context(), Work{Org: fmt.Sprint(i % 5), Patient: true})
				if v != Admitted {
					t.Errorf("verdict %d, want Admitted", v)
				}
				s.MayWait()
				if n%8 == 0 {
					time.Sleep(slice * time.Duration(n%4))
				}
				s.Run()
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				s.Yield()
				mu.Lock()
				running--
				mu.Unlock()
				s.Leave()
			}
		})
	}
	wg.Wait()
	if g.working() != 0 || g.away != 0 || g.waiting != 0 || len(g.free) != slots {
		t.Errorf("at work %d, away %d, waiting %d, free %d in the end, want none and %d", g.working(), g.away, g.waiting, len(g.free), slots)
	}
}
