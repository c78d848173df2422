package budget

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// replicas are processes that decide together, with the allowances of all. They decide by the
// clock of the store.
type replicas struct {
	t       *testing.T
	store   *storagetest.Memory
	history *history
	clock   atomic.Int64 // of the store, in Unix milliseconds
	all     []*Counters
	counter *condition.Counter
}

func newReplicas(t *testing.T, n int, spec string) *replicas {
	r := &replicas{t: t, store: storagetest.NewMemory(), history: &history{}, counter: counter(t, spec)}
	r.counter.Revision = 7
	r.set(noon)
	r.store.SetClock(r.now)
	for range n {
		r.another()
	}
	return r
}

// another adds another replica and returns it.
func (r *replicas) another() *Counters {
	k := New(Config{History: r.history, Windows: r.store.Open().Windows()})
	r.all = append(r.all, k)
	return k
}

func (r *replicas) now() time.Time       { return time.UnixMilli(r.clock.Load()).UTC() }
func (r *replicas) set(at time.Time)     { r.clock.Store(at.UnixMilli()) }
func (r *replicas) pass(d time.Duration) { r.clock.Add(d.Milliseconds()) }

// decide allows an intent if the counter is at most limit with the intent included. It returns
// nil if the intent is not allowed.
func (r *replicas) decide(k *Counters, limit int64, in *engine.Intent, at time.Time) *Reading {
	r.t.Helper()
	for {
		reading, err := k.Read(r.t.Context(), "acme", []*condition.Counter{r.counter}, &engine.Input{Intent: in}, at)
		if err != nil {
			r.t.Error(err)
			return nil
		}
		if reading.Counts()[0].N > limit {
			return nil
		}
		if reserve(r.t, reading) {
			return reading
		}
	}
}

// allows decides an intent and commits it if it is allowed. It reports whether it is allowed.
func (r *replicas) allows(k *Counters, limit int64) bool {
	r.t.Helper()
	reading := r.decide(k, limit, email("a"), r.now())
	reading.Commit()
	return reading != nil
}

// most lets replicas decide in turn until none of them allows any intent. It returns how many
// were allowed.
func (r *replicas) most(limit int64, replicas ...*Counters) (n int64) {
	r.t.Helper()
	for refused := 0; refused < len(replicas); {
		refused = 0
		for _, k := range replicas {
			if r.allows(k, limit) {
				n++
			} else {
				refused++
			}
		}
	}
	return n
}

func (r *replicas) want(what string, got, want int64) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func TestShared_LimitOfTwentyAllowsTwentyOfTwoHundred(t *testing.T) {
	r := newReplicas(t, 3, byAgent)
	var allowed atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			reading := r.decide(r.all[i%3], 20, email("a"), noon)
			if reading != nil && i%7 == 0 { // another's decision stands: ask again
				reading.Release()
				reading = r.decide(r.all[i%3], 20, email("a"), noon)
			}
			if reading != nil {
				reading.Commit()
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	n := allowed.Load()
	for _, k := range r.all { // what was released, but not given back in time
		k.leases.Return(t.Context(), true)
	}
	r.pass(time.Second)
	r.want("allowed", n+r.most(20, r.all...), 20)
	if n > 20 || n < 14 {
		t.Errorf("%d were allowed at once, want 20 but for those who were refused while others thought better of it", n)
	}
}

func TestShared_FarFromTheLimitTheStoreIsSeldomAsked(t *testing.T) {
	r := newReplicas(t, 1, `{"count":{"by":["agent_id"],"window":"1h"},"gt":1000000}`)
	before := r.store.Counts()
	for range 10_000 {
		if !r.allows(r.all[0], 1_000_000) {
			t.Fatal("not allowed")
		}
	}
	if n := r.store.Counts() - before; n > 100 {
		t.Errorf("the store was asked %d times for 10,000 intents, want 100 at most", n)
	}
	in := email("denied")
	for range 100 {
		r.decide(r.all[0], 0, in, r.now())
	}
	before = r.store.Counts()
	for range 1000 {
		r.decide(r.all[0], 0, in, r.now())
	}
	if n := r.store.Counts() - before; n > 0 {
		t.Errorf("the store was asked %d times for 1,000 intents that something else denies", n)
	}
}

func TestShared_AtTheLimitTheStoreIsSeldomAsked(t *testing.T) {
	r := newReplicas(t, 2, byAgent)
	r.want("in all", r.most(20, r.all...), 20)
	before := r.store.Counts()
	for range 1000 {
		r.pass(time.Millisecond)
		r.allows(r.all[0], 20)
	}
	if n := r.store.Counts() - before; n > 10 {
		t.Errorf("the store was asked %d times for 1,000 intents in a second, want 10 at most", n)
	}
}

// TestShared_IdlePlacesAreGivenBack checks replicas that decide in turn. They must allow as
// many as one process, although each holds places.
func TestShared_IdlePlacesAreGivenBack(t *testing.T) {
	r := newReplicas(t, 3, `{"count":{"by":["agent_id"],"window":"1h"},"gt":1000}`)
	var n int64
	for range 200 {
		for _, k := range r.all[1:] {
			if r.allows(k, 1000) {
				n++
			}
		}
	}
	for range 2 {
		for _, k := range r.all[1:] {
			k.leases.Return(t.Context(), false)
		}
	}
	r.want("in all", n+r.most(1000, r.all[0]), 1000)
	ctx, end := context.WithCancel(t.Context())
	end()
	r.all[0].Run(ctx)
	for _, s := range r.all[0].series {
		for _, w := range s.windows {
			if !w.shared.IsIdle() {
				t.Error("places are held after the end")
			}
		}
	}
}

// TestShared_LostReplica checks that the places of a lost replica stay taken until they have
// left the window, and no longer.
func TestShared_LostReplica(t *testing.T) {
	r := newReplicas(t, 2, `{"count":{"by":["agent_id"],"window":"1h"},"gt":1000}`)
	var n int64
	for range 100 {
		if r.allows(r.all[0], 1000) {
			n++
		}
	}
	n += r.most(1000, r.all[1]) // without the first
	if n > 1000 || n < 1000-1000/16 {
		t.Errorf("%d were allowed, want 1000, less what the lost one held: a sixteenth at most", n)
	}
	r.pass(time.Hour + 3*time.Minute)
	r.want("after the window", r.most(1000, r.all[1]), 1000)
}

func TestShared_WindowSlides(t *testing.T) {
	r := newReplicas(t, 2, byAgent)
	for range 10 {
		r.allows(r.all[0], 20)
	}
	r.pass(30 * time.Minute)
	r.want("half", r.most(20, r.all...), 10)
	r.pass(29 * time.Minute)
	r.want("within the window", r.most(20, r.all...), 0)
	r.pass(4 * time.Minute)
	r.want("once the first half has left it", r.most(20, r.all...), 10)
}

// TestShared_ClocksThatAreWrong checks that a wrong clock does not allow more, measured by the
// clock of the store.
func TestShared_ClocksThatAreWrong(t *testing.T) {
	r := newReplicas(t, 3, byAgent)
	skew := []time.Duration{0, 90 * time.Minute, -90 * time.Minute}
	var n int64
	for step := range 200 {
		for i, k := range r.all {
			if reading := r.decide(k, 20, email("a"), r.now().Add(skew[i])); reading != nil {
				reading.Commit()
				n++
			}
		}
		r.set(noon.Add(time.Duration(step) * 17 * time.Second))
	}
	r.want("within an hour", n, 20)
}

// TestShared_EachBoundHolds checks each bound of a rule: at most 10 intents are evaluated with
// a count of 10 or less.
func TestShared_EachBoundHolds(t *testing.T) {
	r := newReplicas(t, 3, `{"count":{"by":["agent_id"],"window":"1h"},"gt":20}`)
	r.counter = condition.JoinCounter([]*condition.Counter{r.counter}, counter(t, `{"count":{"by":["agent_id"],"window":"1h"},"gte":11}`))[0]
	var low, high atomic.Int64
	var all sync.WaitGroup
	for i := range 120 {
		all.Go(func() {
			reading := r.decide(r.all[i%3], 20, email("a"), noon)
			if reading == nil {
				return
			}
			reading.Commit()
			if reading.Counts()[0].N <= 10 {
				low.Add(1)
			} else {
				high.Add(1)
			}
		})
	}
	all.Wait()
	if low.Load() > 10 || low.Load()+high.Load() != 20 {
		t.Errorf("%d counted 10 at most, and %d more, want 10 and 10", low.Load(), high.Load())
	}
}

// TestShared_Sums checks a sum. It adds up the cost of intents, and an intent without cost adds
// nothing.
func TestShared_Sums(t *testing.T) {
	r := newReplicas(t, 2, spent)
	random := rand.New(rand.NewPCG(3, 4))
	var sum int64
	for i := range 400 {
		in := email("a")
		in.Cost = &engine.Cost{AmountMinor: random.Int64N(900), Currency: "EUR"}
		if i%5 == 0 {
			in.Cost.AmountMinor = 0
		}
		if reading := r.decide(r.all[i%2], 20000, in, r.now()); reading != nil {
			reading.Commit()
			sum += in.Cost.AmountMinor
		}
		r.pass(time.Second)
	}
	if sum > 20000 || sum < 19000 {
		t.Errorf("%d was spent, want 20,000 at most, and not much less", sum)
	}
	for _, k := range r.all {
		k.leases.Return(t.Context(), true)
	}
	in := email("a")
	in.Cost = &engine.Cost{AmountMinor: 20000 - sum, Currency: "EUR"}
	r.pass(time.Second)
	if r.decide(r.all[0], 20000, in, r.now()) == nil {
		t.Error("what is left cannot be spent")
	}
	in.Cost = &engine.Cost{AmountMinor: 0, Currency: "EUR"}
	if r.decide(r.all[1], 20000, in, r.now()) == nil {
		t.Error("nothing cannot be spent")
	}
}

// TestShared_PlacesBeyondABound checks places that were granted above a bound. They must not be
// used below the bound.
func TestShared_PlacesBeyondABound(t *testing.T) {
	r := newReplicas(t, 2, spent)
	low := `{"sum":{"field":"cost.amount_minor","currency":"EUR","window":"24h"},"gt":1000}`
	r.counter = condition.JoinCounter([]*condition.Counter{r.counter}, counter(t, low))[0]
	spend := func(k *Counters, amount int64) *Reading {
		in := email("a")
		in.Cost = &engine.Cost{AmountMinor: amount, Currency: "EUR"}
		return r.decide(k, 20000, in, r.now())
	}
	spend(r.all[1], 800).Commit()
	spend(r.all[0], 500).Release()
	spend(r.all[1], 150).Commit()
	if n := spend(r.all[0], 100).Counts()[0].N; n < 1050 {
		t.Errorf("with 950 of another: %d, want 1050 at least", n)
	}
}

// TestShared_SettledByAnother checks that a settlement counts, whichever replica receives it.
func TestShared_SettledByAnother(t *testing.T) {
	more, less := int64(2500), int64(400)
	for name, tt := range map[string]struct {
		s     storage.Settlement
		first bool
		want  int64
	}{
		"executed":             {storage.Settlement{Outcome: storage.Executed}, true, 1000},
		"executed for less":    {storage.Settlement{Outcome: storage.Executed, AmountMinor: &less, Currency: "EUR", Releases: true}, true, 400},
		"for less, by itself":  {storage.Settlement{Outcome: storage.Executed, AmountMinor: &less, Currency: "EUR"}, true, 1000},
		"failed, by itself":    {storage.Settlement{Outcome: "failed"}, true, 1000},
		"executed for more":    {storage.Settlement{Outcome: storage.Executed, AmountMinor: &more, Currency: "EUR"}, true, 2500},
		"failed":               {storage.Settlement{Outcome: "failed", Releases: true}, true, 0},
		"failed, said before":  {storage.Settlement{Outcome: "failed", Releases: true}, false, 1000},
		"for more, but before": {storage.Settlement{Outcome: storage.Executed, AmountMinor: &more, Currency: "EUR"}, false, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplicas(t, 2, spent)
			in := email("a")
			in.Cost = &engine.Cost{AmountMinor: 1000, Currency: "EUR"}
			r.decide(r.all[0], 20000, in, noon).Commit()
			r.all[0].leases.Return(t.Context(), true)
			decided := row("a", noon, nil)
			r.history.rows = []*storage.Record{decided}
			trial := func() int64 {
				counts := must.Get(r.all[1].Simulate(t.Context(), "acme", []*condition.Counter{r.counter}, &engine.Input{Intent: in}, noon))(t)
				return counts[0].N - 1000
			}
			counters := []*condition.Counter{r.counter}
			p := must.Get(r.all[1].Settling(t.Context(), counters, "acme", decided.DecisionID, tt.s, noon))(t)
			if got := trial(); got < 1000 {
				t.Errorf("before it is stored: %d, want no less than 1000", got)
			}
			p.End(t.Context(), tt.first)
			r.want("settled", trial(), tt.want)
			if !tt.first {
				return
			}
			r.store.ForgetWindows()
			r.history.rows[0] = row("a", noon, outcome(tt.s))
			r.want("read from the history", trial(), tt.want)
			reading := r.decide(r.all[1], 20000, in, noon)
			r.want("with the next", reading.Counts()[0].N, tt.want+1000)
		})
	}
}

// TestShared_SettledWhileAWindowIsBegun checks a window that is begun while a settlement is
// stored. The window may have the settlement already.
func TestShared_SettledWhileAWindowIsBegun(t *testing.T) {
	r := newReplicas(t, 2, byAgent)
	in := email("a")
	r.decide(r.all[0], 20, in, noon).Commit()
	decided := row("a", noon, nil)
	r.history.rows = []*storage.Record{decided, row("a", noon, nil)}
	failed := storage.Settlement{Outcome: "failed", Releases: true}
	p := must.Get(r.all[1].Settling(t.Context(), []*condition.Counter{r.counter}, "acme", decided.DecisionID, failed, noon))(t)
	r.store.ForgetWindows()
	r.history.rows[0] = row("a", noon, outcome(failed))
	r.want("with one that failed, and another", r.decide(r.another(), 20, email("a"), noon).Counts()[0].N, 2)
	p.End(t.Context(), true)
	r.want("with both", r.decide(r.another(), 20, email("a"), noon).Counts()[0].N, 3)
}

// TestShared_AnotherRuleCountsAnew checks that a changed rule counts the rows of the history,
// because its old form may not have counted everything.
func TestShared_AnotherRuleCountsAnew(t *testing.T) {
	r := newReplicas(t, 1, byAgent)
	r.want("before", r.most(5, r.all[0]), 5)
	r.history.rows = []*storage.Record{row("a", noon, nil), row("a", noon, nil)}
	next := *r.counter
	next.Revision++
	r.counter = &next
	r.want("after", r.most(5, r.all[0]), 3)
}

// faulty fails every other call, either before it counts or afterwards.
type faulty struct {
	storage.Windows
	n atomic.Int64
}

var errFault = errors.New("the store is gone")

func (f *faulty) Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	switch f.n.Add(1) % 4 {
	case 1:
		return storage.Granted{}, errFault
	case 3:
		f.Windows.Count(ctx, w, ask) // its answer is lost
		return storage.Granted{}, errFault
	}
	return f.Windows.Count(ctx, w, ask)
}

func TestShared_NothingIsAllowedWithoutTheStore(t *testing.T) {
	r := newReplicas(t, 0, byAgent)
	k := New(Config{History: r.history, Windows: &faulty{Windows: r.store.Open().Windows()}})
	var allowed, failed int
	for range 300 {
		reading, err := k.Read(t.Context(), "acme", []*condition.Counter{r.counter}, &engine.Input{Intent: email("a")}, r.now())
		ok := false
		if err == nil && reading.Counts()[0].N <= 20 {
			if ok, err = reading.Reserve(t.Context()); ok {
				reading.Commit()
				allowed++
			}
		}
		if err != nil {
			failed++
			if ok || !errors.Is(err, errFault) {
				t.Fatalf("allowed %v with error %v", ok, err)
			}
		}
		r.pass(time.Second)
	}
	if allowed > 20 || allowed == 0 || failed == 0 {
		t.Errorf("%d were allowed, and %d failed, want 20 at most", allowed, failed)
	}
}

// TestShared_NeverMoreThanTheLimit checks random histories of replicas, of which some are lost.
// By the store's clock, no window may have more than the limit. No more intents than a lower
// bound may be evaluated with a count below that bound.
func TestShared_NeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		limits := [][2]int64{{5, 20}, {20, 20}, {100, 400}, {390, 400}}[seed%4]
		life := newLife(t, random, limits)
		for range 400 {
			life.step()
		}
		for i, limit := range limits {
			if n := most(life.stand[i]); n > limit {
				t.Errorf("seed %d: %d in an hour that counted %d at most", seed, n, limit)
			}
		}
		if n := len(life.stand[1]); int64(n) < limits[1] {
			t.Errorf("seed %d: %d were allowed in all", seed, n)
		}
	}
}

// most returns the greatest number of times within one hour.
func most(times []time.Time) (n int64) {
	slices.SortFunc(times, time.Time.Compare)
	from := 0
	for to := range times {
		for times[to].Sub(times[from]) > time.Hour {
			from++
		}
		n = max(n, int64(to-from+1))
	}
	return n
}

// life performs random actions of replicas.
type life struct {
	*replicas
	random *rand.Rand
	limits [2]int64
	lossy  bool
	skews  []time.Duration
	open   []undecided
	stand  [2][]time.Time // when intents were allowed that counted one of limits at most
}

type undecided struct {
	*Reading
	at time.Time
}

func newLife(t *testing.T, random *rand.Rand, limits [2]int64) *life {
	at := func(limit int64) *condition.Counter {
		return counter(t, fmt.Sprintf(`{"count":{"by":["agent_id"],"action_type":"email.send","window":"1h"},"gt":%d}`, limit))
	}
	l := &life{
		replicas: newReplicas(t, 3, byAgent), random: random, limits: limits, lossy: random.IntN(2) == 0,
		skews: []time.Duration{0, 20 * time.Second, time.Duration(random.IntN(100)) * time.Minute},
	}
	l.counter = condition.JoinCounter([]*condition.Counter{at(limits[0])}, at(limits[1]))[0]
	return l
}

func (l *life) step() {
	i := l.random.IntN(3)
	switch l.random.IntN(10) {
	case 0:
		if l.lossy {
			l.all[i] = l.another()
			l.all = l.all[:3]
		}
	case 1:
		l.all[i].leases.Return(l.t.Context(), l.random.IntN(2) == 0)
	case 2, 3, 4:
		for range l.random.IntN(len(l.open) + 1) {
			l.end(l.random.IntN(len(l.open)))
		}
	default:
		for range l.random.IntN(2 * int(l.limits[1])) {
			reading := l.decide(l.all[i], l.limits[1], email("a"), l.now().Add(l.skews[i]))
			if reading == nil {
				break
			}
			l.open = append(l.open, undecided{reading, l.now()})
		}
	}
	if l.random.IntN(3) == 0 {
		l.pass(time.Duration(l.random.IntN(45)) * time.Second)
	}
	if l.random.IntN(30) == 0 {
		l.pass(time.Duration(l.random.IntN(62)) * time.Minute)
	}
}

// end ends the i-th reservation that is open.
func (l *life) end(i int) {
	u := l.open[i]
	l.open = slices.Delete(l.open, i, i+1)
	if l.random.IntN(4) == 0 {
		u.Release()
		return
	}
	u.Commit()
	for i, limit := range l.limits {
		if u.Counts()[0].N <= limit {
			l.stand[i] = append(l.stand[i], u.at)
		}
	}
}
