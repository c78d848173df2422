package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/metricstest"
)

const deadline = 100 * time.Millisecond

func newTestGate(slots int) *Gate {
	return New(Config{Slots: slots, Deadline: deadline, Metrics: prometheus.NewRegistry()})
}

// enter takes a slot. The test fails unless a slot is free.
func enter(t testing.TB, g *Gate, w Work) *Slot {
	t.Helper()
	s, v := g.Enter(context.Background(), w)
	if v != Admitted {
		t.Fatalf("Enter(%+v) = %d, want Admitted", w, v)
	}
	return &s
}

// wantIdle fails the test if a request runs, waits or is paused.
func wantIdle(t testing.TB, g *Gate) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	got := map[string]int{
		"working": g.working(), "costly": g.costlyWorking, "begun": g.costlyBegun, "waiting": g.waiting, "paused": g.paused, "queues": len(g.queued),
	}
	for _, o := range g.organizations {
		got["working"] += o.working
		for _, q := range o.queues {
			got["waiting"] += len(q.waiting)
			got["paused"] += q.paused
		}
	}
	for what, n := range got {
		if n != 0 {
			t.Errorf("%s: %d in the end, want none", what, n)
		}
	}
}

// line has requests at a gate. It records the order in which they are served or refused.
type line struct {
	g      *Gate
	t      *testing.T
	mu     sync.Mutex
	served []string // the names of requests, in the order in which they got slots
	slots  map[string]*Slot
	ended  map[string]Verdict
}

func newLine(t *testing.T, g *Gate) *line {
	return &line{g: g, t: t, slots: make(map[string]*Slot), ended: make(map[string]Verdict)}
}

// wait starts a request that waits for a slot.
func (l *line) wait(name string, w Work) {
	go func() {
		s, v := l.g.Enter(context.Background(), w)
		l.mu.Lock()
		defer l.mu.Unlock()
		if v != Admitted {
			l.ended[name] = v
			return
		}
		l.served = append(l.served, name)
		l.slots[name] = &s
	}()
	synctest.Wait()
}

// outcome returns the names of the served requests, in order, and the verdicts of the refused
// requests.
func (l *line) outcome() ([]string, map[string]Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.served), maps.Clone(l.ended)
}

// order returns the names of the served requests, in order.
func (l *line) order() []string {
	served, _ := l.outcome()
	return served
}

// finish keeps the slot of a request for the duration d and then returns the slot.
func (l *line) finish(name string, d time.Duration) {
	time.Sleep(d)
	l.mu.Lock()
	s := l.slots[name]
	delete(l.slots, name)
	l.mu.Unlock()
	if s == nil {
		l.t.Fatalf("%s has no slot", name)
	}
	s.Leave()
	synctest.Wait()
}

// drain finishes the served requests one after another, until none is left. took returns how long a
// request runs.
func (l *line) drain(took func(name string) time.Duration) {
	for {
		synctest.Wait()
		l.mu.Lock()
		var next string
		for _, name := range l.served {
			if l.slots[name] != nil {
				next = name
				break
			}
		}
		l.mu.Unlock()
		if next == "" {
			return
		}
		l.finish(next, took(next))
	}
}

func constant(d time.Duration) func(string) time.Duration {
	return func(string) time.Duration { return d }
}

// TestDecision_Bounds_QueuesAreServedInTurn checks the promise "Queues are served in turn."
func TestDecision_Bounds_QueuesAreServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		first := enter(t, g, Work{Org: "a"})
		for i := range 4 {
			l.wait(fmt.Sprint("a", i), Work{Org: "a"})
		}
		l.wait("b0", Work{Org: "b"})
		l.wait("b1", Work{Org: "b"})
		l.wait("c0", Work{Org: "c"})
		time.Sleep(time.Microsecond)
		first.Leave()
		l.drain(constant(time.Microsecond))
		// a has already been charged for its first slot.
		if got, want := strings.Join(l.order(), " "), "b0 c0 a0 b1 a1 a2 a3"; got != want {
			t.Errorf("served %s, want %s", got, want)
		}
	})
}

// TestDecision_Bounds_TimeInTheSlotIsCharged checks the promise "Time in the slot is charged to the
// organization". Requests that take ten times as long are served a tenth as often.
func TestDecision_Bounds_TimeInTheSlotIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		first := enter(t, g, Work{Org: "z"})
		for i := range 40 {
			l.wait(fmt.Sprint("costly", i), Work{Org: "costly"})
			l.wait(fmt.Sprint("cheap", i), Work{Org: "cheap"})
		}
		first.Leave()
		l.drain(func(name string) time.Duration {
			if strings.HasPrefix(name, "costly") {
				return 100 * time.Microsecond
			}
			return 10 * time.Microsecond
		})
		last := slices.Index(l.order(), "cheap39")
		if n := strings.Count(strings.Join(l.order()[:last], " "), "costly"); n < 3 || n > 6 {
			t.Errorf("%d costly requests came before the last of 40 cheap ones, want about 4: %v", n, l.order())
		}
	})
}

// TestGate_SavesNothingUp checks that an organization gets no credit for a pause. After the pause
// its charge exceeds others' charges by at most the time of its last requests.
func TestGate_SavesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		for range 50 { // only a sends requests
			s := enter(t, g, Work{Org: "a"})
			time.Sleep(100 * time.Microsecond)
			s.Leave()
		}
		first := enter(t, g, Work{Org: "a"})
		for i := range 4 {
			l.wait(fmt.Sprint("b", i), Work{Org: "b"})
			l.wait(fmt.Sprint("a", i), Work{Org: "a"})
		}
		time.Sleep(100 * time.Microsecond)
		first.Leave()
		l.drain(constant(100 * time.Microsecond))
		if got := strings.Join(l.order(), " "); strings.Index(got, "a0") > strings.Index(got, "b3") {
			t.Errorf("served %s, want those of a among those of b", got)
		}
	})
}

func TestGate_KeepsTheOrderOfAnOrganization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		first := enter(t, g, Work{Org: "a"})
		for i := range 5 {
			l.wait(fmt.Sprint(i), Work{Org: "a"})
		}
		first.Leave()
		l.drain(constant(time.Microsecond))
		if got, want := strings.Join(l.order(), " "), "0 1 2 3 4"; got != want {
			t.Errorf("served %s, want %s", got, want)
		}
	})
}

// TestDecision_Bounds_CostlyWorkLeavesASlot checks the promise "A slot (as many as processors; Rego
// at most one fewer, at least one)." Costly work may not hold every slot.
func TestDecision_Bounds_CostlyWorkLeavesASlot(t *testing.T) {
	for slots, most := range map[int]int{1: 1, 2: 1, 3: 2, 8: 7} {
		for name, w := range map[string]Work{"rego": {Costly: true}, "managing": {Kind: Managing}} {
			t.Run(fmt.Sprint(name, slots), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newTestGate(slots)
					l := newLine(t, g)
					for i := range slots + 1 {
						w.Org = fmt.Sprint(i) // many organizations send one request each
						l.wait(w.Org, w)
					}
					if len(l.order()) != most {
						t.Errorf("%d of %d slots went to costly work, want %d", len(l.order()), slots, most)
					}
					if slots > 1 {
						enter(t, g, Work{Org: "b"}).Leave() // does not wait
					}
					l.drain(constant(0))
					if len(l.order()) != slots+1 {
						t.Errorf("%d were served in the end, want %d", len(l.order()), slots+1)
					}
				})
			})
		}
	}
}

// TestDecision_Bounds_OneOrganizationLeavesASlot checks the promise "While one organization does
// its worst …, another's p99 stays". No request may give one organization every slot.
func TestDecision_Bounds_OneOrganizationLeavesASlot(t *testing.T) {
	for slots, most := range map[int]int{1: 1, 2: 1, 3: 2, 8: 7} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newTestGate(slots)
				l := newLine(t, g)
				for i := range 2 * slots {
					l.wait(fmt.Sprint("a", i), Work{Org: "a", Kind: Kind(i % 2)})
				}
				if len(l.order()) != most {
					t.Errorf("%d of %d slots went to one organization, want %d", len(l.order()), slots, most)
				}
				if slots > 1 {
					enter(t, g, Work{Org: "b"}).Leave() // does not wait
				}
				l.drain(constant(0))
				if len(l.order()) != 2*slots {
					t.Errorf("%d were served in the end, want %d", len(l.order()), 2*slots)
				}
			})
		})
	}
}

// TestGate_CostlyWorkHoldsUpNoOther checks that a cheap request overtakes a costly request that may
// not start yet.
func TestGate_CostlyWorkHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(2)
		l := newLine(t, g)
		for i := range 5 {
			l.wait(fmt.Sprint("costly", i), Work{Org: fmt.Sprint("a", i), Costly: true})
		}
		light := enter(t, g, Work{Org: "b"})
		l.wait("b", Work{Org: "b"})
		light.Leave()
		synctest.Wait()
		if got, want := strings.Join(l.order(), " "), "costly0 b"; got != want {
			t.Errorf("served %s, want %s", got, want)
		}
		l.drain(constant(0))
	})
}

func TestGate_RefusesAtOnceWhatFindsTooManyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		first := enter(t, g, Work{Org: "z"})
		for i := range maxWaiting / 4 {
			l.wait(fmt.Sprint("a", i), Work{Org: "a"})
		}
		refuse := func(w Work) {
			t.Helper()
			before := time.Now()
			if _, v := g.Enter(context.Background(), w); v != QueueFull || time.Since(before) != 0 {
				t.Errorf("Enter(%+v) = %d after %v, want QueueFull at once", w, v, time.Since(before))
			}
		}
		refuse(Work{Org: "a"})
		taken := maxWaiting / 4
		for greedy := range 8 { // the next organization finds room, however many fill their queues
			org := fmt.Sprint("greedy", greedy)
			for ; len(g.orgQueueLocked(org, Deciding).waiting) < min(maxWaiting/4, maxWaiting-taken); taken++ {
				l.wait(fmt.Sprint(org, taken), Work{Org: org})
			}
			refuse(Work{Org: org})
		}
		for ; taken < maxWaiting; taken++ { // many organizations fill all places
			l.wait(fmt.Sprint("b", taken), Work{Org: fmt.Sprint("b", taken)})
		}
		refuse(Work{Org: "c"})
		l.wait("patient", Work{Org: "c", Kind: Managing, Patient: true}) // its caller bounds patient work
		first.Leave()
		l.drain(constant(0))
		if len(l.order()) != maxWaiting+1 {
			t.Errorf("%d served, want %d", len(l.order()), maxWaiting+1)
		}
		wantIdle(t, g)
	})
}

// TestGate_RefusesByTheDeadline checks that a request is refused if its wait exceeds the deadline.
// If the wait is expected to be too long, the request is refused at once.
func TestGate_RefusesByTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		for range 50 { // each runs for the whole deadline, which does not refuse the next request
			s := enter(t, g, Work{Org: "a"})
			time.Sleep(deadline)
			s.Leave()
		}
		s := enter(t, g, Work{Org: "a"})
		for i := range 8 {
			l.wait(fmt.Sprint(i), Work{Org: "a"})
		}
		time.Sleep(deadline/2 + 1)
		l.wait("late", Work{Org: "a"})
		l.wait("other", Work{Org: "b"})
		_, refused := l.outcome()
		if want := map[string]Verdict{"late": QueueDeadline}; !cmp.Equal(refused, want) {
			t.Errorf("refused at once: %v, want %v", refused, want)
		}
		time.Sleep(deadline) // no request ends meanwhile
		synctest.Wait()
		if served, refused := l.outcome(); len(refused) != 10 || len(served) != 0 {
			t.Errorf("%d refused and %d served at the deadline, want 10 and none", len(refused), len(served))
		}
		s.Leave()
		enter(t, g, Work{Org: "a"}).Leave()
	})
}

// TestGate_BearsAPause checks that a pause shorter than the deadline causes no refusal, if requests
// take little time.
func TestGate_BearsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		for range 50 {
			s := enter(t, g, Work{Org: "a"})
			time.Sleep(deadline / 500)
			s.Leave()
		}
		s := enter(t, g, Work{Org: "a"})
		for i := range 9 {
			l.wait(fmt.Sprint(i), Work{Org: "a"})
			time.Sleep(deadline / 10)
		}
		s.Leave()
		l.drain(constant(deadline / 500))
		if served, refused := l.outcome(); len(served) != 9 || len(refused) != 0 {
			t.Errorf("%v served and %v refused, want all served", served, refused)
		}
	})
}

func TestGate_WorkOnDocumentsIsMorePatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		s := enter(t, g, Work{Org: "z"})
		l.wait("decision", Work{Org: "a"})
		l.wait("document", Work{Org: "a", Kind: Managing})
		l.wait("export", Work{Org: "a", Kind: Managing, Patient: true})
		time.Sleep(deadline)
		synctest.Wait()
		_, refused := l.outcome()
		if want := map[string]Verdict{"decision": QueueDeadline}; !cmp.Equal(refused, want) {
			t.Errorf("refused after one deadline: %v, want %v", refused, want)
		}
		time.Sleep(managingPatience * deadline)
		synctest.Wait()
		if _, refused := l.outcome(); refused["document"] != QueueDeadline || len(refused) != 2 {
			t.Errorf("refused after %d deadlines: %v, want the document, too", managingPatience+1, refused)
		}
		s.Leave()
		l.drain(constant(0))
		if got := strings.Join(l.order(), " "); got != "export" {
			t.Errorf("served %q, want the export", got)
		}
	})
}

// work starts long work that consists of units. The work yields after each unit.
func (l *line) work(name string, w Work, units int, unit time.Duration) {
	go func() {
		s, v := l.g.Enter(context.Background(), w)
		if v != Admitted {
			l.t.Errorf("%s: verdict %d, want Admitted", name, v)
			return
		}
		defer s.Leave()
		for range units {
			l.mu.Lock()
			l.served = append(l.served, name)
			l.mu.Unlock()
			time.Sleep(unit)
			s.Yield()
		}
	}()
	synctest.Wait()
}

// TestDecision_Bounds_LongWorkTakesTurns checks that long work of several organizations alternates.
// A request that arrives meanwhile waits for a slice, not until that work ends.
func TestDecision_Bounds_LongWorkTakesTurns(t *testing.T) {
	for name, kind := range map[string]Work{"decisions": {}, "rego": {Costly: true}, "scans": {Kind: Managing}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t, newTestGate(1))
				for _, org := range []string{"a", "b"} {
					kind.Org = org
					l.work(org+"1", kind, 4, slice)
					l.work(org+"2", kind, 2, slice)
				}
				time.Sleep(3 * slice / 2) // the request arrives in the second slice
				l.work("new", Work{Org: "c"}, 1, slice)
				time.Sleep(time.Second)
				// Within an organization, work that has begun is finished before other work starts.
				want := "a1 b1 new a1 b1 a1 b1 a1 b1 a2 b2 a2 b2"
				if got := strings.Join(l.order(), " "); got != want {
					t.Errorf("served %s, want %s", got, want)
				}
			})
		})
	}
}

func TestSlot_YieldsOnceASlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, newTestGate(1))
		l.work("a", Work{Org: "a"}, 12, slice/4)
		l.work("b", Work{Org: "b"}, 4, slice/4)
		time.Sleep(time.Second)
		if got, want := strings.Join(l.order(), " "), "a a a a b b b b a a a a a a a a"; got != want {
			t.Errorf("served %s, want %s", got, want)
		}
		wantIdle(t, l.g)
	})
}

// TestSlot_YieldTellsWhatItTook checks that Yield returns how long other work ran. For the mean,
// the whole work counts as one request.
func TestSlot_YieldTellsWhatItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		l := newLine(t, g)
		var none Slot
		s := enter(t, g, Work{Org: "a"})
		l.work("b", Work{Org: "b"}, 1, 5*slice)
		time.Sleep(slice)
		if took := s.Yield() + none.Yield(); took != 5*slice {
			t.Errorf("Yield = %v, want %v", took, 5*slice)
		}
		time.Sleep(slice / 2)
		if took := s.Yield(); took != 0 {
			t.Errorf("Yield before its time = %v, want 0", took)
		}
		s.Leave()
		s.Yield() // there is no slot to give back
		g.mu.Lock()
		defer g.mu.Unlock()
		if mean, want := g.organizations["a"].queues[Deciding].mean, 3*slice/2/meanOver; mean != want {
			t.Errorf("mean = %v, want %v: one request of three halves of a slice", mean, want)
		}
	})
}

// TestGate_BeginsSoMuchCostlyWork checks the bound of costly work that has begun, because such work
// keeps its memory. The bound holds however many organizations send requests.
func TestGate_BeginsSoMuchCostlyWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, newTestGate(2))
		for i := range 2 * maxBegun {
			l.work(fmt.Sprint(i), Work{Org: fmt.Sprint(i), Costly: true, Patient: true}, maxBegun, slice)
		}
		time.Sleep(maxBegun*maxBegun*slice/2 + slice/2) // no work has ended yet
		begun := make(map[string]bool)
		for _, name := range l.order() {
			begun[name] = true
		}
		if len(begun) != maxBegun {
			t.Errorf("%d are begun before the first ends, want %d", len(begun), maxBegun)
		}
		l.work("light", Work{Org: "light"}, 1, 0)
		if got := l.order(); got[len(got)-1] != "light" {
			t.Errorf("served %s last, want light", got[len(got)-1])
		}
		time.Sleep(time.Hour)
		if n, want := len(l.order()), 2*maxBegun*maxBegun+1; n != want {
			t.Errorf("%d slices in the end, want %d", n, want)
		}
	})
}

func TestGate_GivesUpWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(1)
		s := enter(t, g, Work{Org: "z"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan Verdict, 1)
		go func() {
			_, v := g.Enter(ctx, Work{Org: "a", Kind: Managing, Patient: true})
			ended <- v
		}()
		synctest.Wait()
		cancel()
		if v := <-ended; v != QueueDeadline || g.waiting != 0 {
			t.Errorf("Enter whose context ended = %d with %d waiting, want QueueDeadline and none", v, g.waiting)
		}
		s.Leave()
		s.Leave() // a second call must do nothing
		wantIdle(t, g)
	})
}

func TestGate_ForgetsWhoIsGone(t *testing.T) {
	g := newTestGate(1)
	for i := range 6 * maxWaiting {
		enter(t, g, Work{Org: fmt.Sprint(i)}).Leave()
	}
	if n := len(g.organizations); n > 2*maxWaiting {
		t.Errorf("%d organizations are remembered, want at most %d", n, 2*maxWaiting)
	}
}

func TestGate_HoldsItsBoundsUnderRace(t *testing.T) {
	const slots = 3
	g := newTestGate(slots)
	var (
		wg            sync.WaitGroup
		mu            sync.Mutex
		working, most int
	)
	for i := range 64 {
		wg.Go(func() {
			for n := range 200 {
				s, v := g.Enter(context.Background(), Work{Org: fmt.Sprint(i % 7), Kind: Kind(i % 2), Costly: n%3 == 0})
				if v != Admitted {
					continue
				}
				mu.Lock()
				working++
				most = max(most, working)
				working--
				mu.Unlock()
				s.Yield()
				s.Leave()
			}
		})
	}
	wg.Wait()
	if most > slots {
		t.Errorf("at work at most %d, want at most %d", most, slots)
	}
	wantIdle(t, g)
}

func TestGate_CostsNoMemoryWhereNobodyWaits(t *testing.T) {
	g := newTestGate(8)
	if n := testing.AllocsPerRun(100, func() {
		s, _ := g.Enter(context.Background(), Work{Org: "acme"})
		s.Leave()
	}); n != 0 {
		t.Errorf("Enter and Leave = %v allocations, want 0", n)
	}
}

func TestMetrics_TellWhatBecameOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		g := New(Config{Slots: 1, Deadline: deadline, Metrics: reg})
		l := newLine(t, g)
		first := enter(t, g, Work{Org: "a"})
		l.wait("late", Work{Org: "a"})
		time.Sleep(deadline)
		synctest.Wait()
		for i := range maxWaiting/4 + 1 {
			l.wait(fmt.Sprint(i), Work{Org: "a"})
		}
		got := make(map[string]float64)
		for name, m := range metricstest.Read(t, reg) {
			got[name] = m.Value + float64(m.Count)
			if m.Count > 0 && (m.Buckets == 0 || !m.Native) {
				t.Errorf("%s is not both classic and native", name)
			}
		}
		want := map[string]float64{
			"writ_admission_rejected_total queue_full": 1, "writ_admission_rejected_total queue_deadline": 1,
			"writ_admission_in_flight": 1, "writ_admission_waiting": maxWaiting / 4, "writ_admission_wait_seconds": 1,
			"writ_admission_slot_seconds_total decide": 0, "writ_admission_slot_seconds_total manage": 0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		first.Leave()
		l.drain(constant(0))
		if held := metricstest.Read(t, reg)["writ_admission_slot_seconds_total decide"].Value; held != deadline.Seconds() {
			t.Errorf("slots were held for %v s, want %v", held, deadline.Seconds())
		}
	})
}

func BenchmarkGate(b *testing.B) {
	g := newTestGate(1 << 10)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s, v := g.Enter(context.Background(), Work{Org: "acme"})
			if v == Admitted {
				s.Leave()
			}
		}
	})
}
