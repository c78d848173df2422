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

// As much as may wait for slots may have lost them: then who waits keeps its slot.
func TestSlot_IsKeptWhereTooManyHaveLostTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		var lost sync.WaitGroup
		silent := make(chan struct{})
		for range maxWaiting/4 + 1 {
			lost.Go(func() {
				s, v := g.Enter(t.Context(), Work{Org: "a", Patient: true})
				if v != Admitted {
					t.Errorf("verdict %d, want Admitted", v)
				}
				s.MayWait()
				<-silent
				s.Run()
				s.Leave()
			})
		}
		l.wait("b", Work{Org: "b"})
		time.Sleep(deadline / 2)
		if served, _ := l.outcome(); len(served) != 1 {
			t.Errorf("%v was served, want b", served)
		}
		l.drain(constant(0))
		time.Sleep(2 * time.Second) // each for a slice or two
		l.wait("c", Work{Org: "c"})
		time.Sleep(deadline)
		synctest.Wait()
		if _, refused := l.outcome(); refused["c"] != QueueDeadline || g.away != maxWaiting/4 {
			t.Errorf("refused %v with %d away, want c with %d", refused, g.away, maxWaiting/4)
		}
		close(silent)
		lost.Wait()
		if g.working() != 0 || g.away != 0 || g.waiting != 0 {
			t.Errorf("at work %d, away %d, waiting %d in the end, want none", g.working(), g.away, g.waiting)
		}
	})
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
