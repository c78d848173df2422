package admission

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

const deadline = 100 * time.Millisecond

// newTestGate returns a gate of limit n.
func newTestGate(n int) *Gate {
	g := New(Config{Deadline: deadline, Refusals: 100, Metrics: prometheus.NewRegistry()})
	g.limit.n = n
	return g
}

// admit fills g and returns what to leave with.
func admit(t testing.TB, g *Gate) []time.Time {
	t.Helper()
	var starts []time.Time
	for range g.limit.n {
		start, v := g.Enter(time.Now(), false)
		if v != Admitted {
			t.Fatalf("Enter = %d, want Admitted", v)
		}
		starts = append(starts, start)
	}
	return starts
}

// queue has n requests wait at g, in the order of their numbers, and returns
// the verdicts in the order in which they fall.
func queue(g *Gate, n int) <-chan [2]int {
	fell := make(chan [2]int, n)
	for i := range n {
		go func() {
			_, v := g.Enter(time.Now(), false)
			fell <- [2]int{i, int(v)}
		}()
		synctest.Wait()
	}
	return fell
}

func TestGate_RefusesAtOnceWhatFindsTheRoomFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(2)
		starts := admit(t, g)
		fell := queue(g, 2)
		before := time.Now()
		if _, v := g.Enter(time.Now(), false); v != QueueFull || time.Since(before) != 0 {
			t.Errorf("Enter of a full gate = %d after %v, want QueueFull at once", v, time.Since(before))
		}
		for _, start := range starts {
			g.Leave(start)
		}
		<-fell
		<-fell
		g.Leave(time.Now())
		g.Leave(time.Now())
		if g.working != 0 || g.room.len != 0 {
			t.Errorf("at work %d, waiting %d after all left, want none", g.working, g.room.len)
		}
	})
}

func TestGate_StartsInTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(3)
		starts := admit(t, g)
		fell := queue(g, 3)
		for i := range 3 {
			g.Leave(starts[i])
			if got, want := <-fell, [2]int{i, int(Admitted)}; got != want {
				t.Errorf("the next verdict = %v, want %v", got, want)
			}
		}
	})
}

func TestGate_NewcomersDoNotOvertakeThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		start := admit(t, g)[0]
		first := queue(g, 1)
		g.limit.n = 2 // a slot is free, but somebody waits for it
		second := queue(g, 1)
		g.Leave(start)
		if got, want := [2][2]int{<-first, <-second}, ([2][2]int{}); got != want {
			t.Errorf("verdicts = %v, want both admitted", got)
		}
		if g.working != 2 {
			t.Errorf("at work = %d, want 2", g.working)
		}
	})
}

func TestGate_RefusesAtTheDeadlineThoughNothingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(2)
		starts := admit(t, g)
		arrived := time.Now()
		early := queue(g, 1)
		time.Sleep(deadline / 2)
		late := queue(g, 1)
		var got []time.Duration
		for _, fell := range []<-chan [2]int{early, late} {
			if v := <-fell; v[1] != int(QueueDeadline) {
				t.Errorf("verdict = %d, want QueueDeadline", v[1])
			}
			got = append(got, time.Since(arrived))
		}
		if want := []time.Duration{deadline, deadline * 3 / 2}; !cmp.Equal(got, want) {
			t.Errorf("refused after %v, want %v", got, want)
		}
		for _, start := range starts {
			g.Leave(start)
		}
		if _, v := g.Enter(time.Now(), false); v != Admitted {
			t.Errorf("Enter of an idle gate = %d, want Admitted", v)
		}
	})
}

// TestGate_DoesNotStartWhatIsTooLate has the slot come free when the deadline
// has passed, before the timer has said so.
func TestGate_DoesNotStartWhatIsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		start := admit(t, g)[0]
		fell := queue(g, 1)
		g.mu.Lock()
		g.room.first.deadline = time.Now()
		g.mu.Unlock()
		g.Leave(start)
		if v := <-fell; v[1] != int(QueueDeadline) {
			t.Errorf("verdict = %d, want QueueDeadline", v[1])
		}
		if g.working != 0 {
			t.Errorf("at work = %d, want 0", g.working)
		}
	})
}

func TestGate_EarlyRequestsComeLast(t *testing.T) {
	g := newTestGate(4)
	for i, step := range []struct {
		early bool
		want  Verdict
	}{
		{true, Admitted}, {true, Admitted},
		{true, QueueFull}, // half of the limit is for others, and it does not wait
		{false, Admitted}, {false, Admitted},
		{true, QueueFull},
	} {
		if _, got := g.Enter(time.Now(), step.early); got != step.want {
			t.Errorf("Enter %d, early %t = %d, want %d", i, step.early, got, step.want)
		}
	}
	if g.limit.reached {
		t.Error("early requests count as held back by the limit")
	}
}

func TestGate_AllowsNoMoreThanTheLimitUnderRace(t *testing.T) {
	g := newTestGate(4)
	var (
		wg            sync.WaitGroup
		mu            sync.Mutex
		working, most int
	)
	for range 32 {
		wg.Go(func() {
			for range 200 {
				start, v := g.Enter(time.Now(), false)
				if v != Admitted {
					g.Pause()
					continue
				}
				mu.Lock()
				working++
				most = max(most, working)
				mu.Unlock()
				mu.Lock()
				working--
				mu.Unlock()
				g.Leave(start)
			}
		})
	}
	wg.Wait()
	// Adapted, the limit is never below minLimit.
	if most > minLimit || g.working != 0 || g.room.len != 0 {
		t.Errorf("at work at most %d, in the end %d with %d waiting, want at most %d and none", most, g.working, g.room.len, minLimit)
	}
}

func TestGate_CostsNoMemoryBelowOverload(t *testing.T) {
	g := newTestGate(8)
	if n := testing.AllocsPerRun(100, func() {
		start, _ := g.Enter(time.Now(), false)
		g.Leave(start)
	}); n != 0 {
		t.Errorf("Enter and Leave = %v allocations, want 0", n)
	}
}

func BenchmarkGate(b *testing.B) {
	g := newTestGate(1 << 10)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			start, v := g.Enter(time.Now(), false)
			if v == Admitted {
				g.Leave(start)
			}
		}
	})
}
