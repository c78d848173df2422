package budget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
)

// history has the rows of one organization, oldest first. It returns pages of two.
type history struct {
	mu   sync.Mutex
	rows []*storage.Record
	err  error
	asks int
}

func (h *history) ListRecords(_ context.Context, org string, f storage.Filter, p storage.Page) (page []*storage.Record, next string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.After == "" {
		h.asks++
	}
	var from int
	fmt.Sscan(p.After, &from)
	for i := from; i < len(h.rows); i++ {
		if r := h.rows[i]; r.OrganizationID == org && f.Selects(r) {
			page = append(page, r)
		}
		if len(page) == 2 {
			return page, fmt.Sprint(i + 1), h.err
		}
	}
	return page, "", h.err
}

func (h *history) Record(_ context.Context, org, decisionID string) (*storage.Record, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.rows {
		if r.OrganizationID == org && r.DecisionID == decisionID {
			return r, nil
		}
	}
	return nil, storage.ErrNotFound
}

func counter(t testing.TB, spec string) *condition.Counter {
	t.Helper()
	c := must.Get(condition.Compile(spec, condition.Options{Side: resource.ForBlock}))(t)
	return c.Counters[0]
}

const (
	byAgent = `{"count":{"by":["agent_id"],"action_type":"email.send","window":"1h"},"gt":20}`
	spent   = `{"sum":{"field":"cost.amount_minor","currency":"EUR","window":"24h"},"gt":20000}`
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func email(agent string) *engine.Intent {
	return &engine.Intent{IntentID: uuid.NewString(), AgentID: agent, ActionType: "email.send"}
}

func read(t testing.TB, k *Counters, c *condition.Counter, in *engine.Intent, at time.Time) *Reading {
	t.Helper()
	r := must.Get(k.Read(t.Context(), "acme", []*condition.Counter{c}, &engine.Input{Intent: in}, at))(t)
	return r
}

func allow(t testing.TB, k *Counters, c *condition.Counter, in *engine.Intent, at time.Time) {
	t.Helper()
	r := read(t, k, c, in, at)
	if ok, err := r.Reserve(t.Context()); !ok {
		t.Fatalf("Reserve: another has changed the counter, %v", err)
	}
	r.Commit()
}

func reserve(t testing.TB, r *Reading) bool {
	t.Helper()
	ok, err := r.Reserve(t.Context())
	if err != nil {
		t.Error(err)
	}
	return ok
}

func TestCounters_LimitOfTwentyAllowsTwenty(t *testing.T) {
	k, c := New(Config{History: &history{}}), counter(t, byAgent)
	var allowed atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for {
				r, err := k.Read(t.Context(), "acme", []*condition.Counter{c}, &engine.Input{Intent: email("a")}, noon)
				if err != nil {
					t.Error(err)
					return
				}
				if r.Counts()[0].N > 20 {
					return
				}
				runtime.Gosched()
				if reserve(t, r) {
					if i%7 == 0 { // another's decision stands: ask again
						r.Release()
						i++
						continue
					}
					r.Commit()
					allowed.Add(1)
					return
				}
			}
		})
	}
	all.Wait()
	if n := allowed.Load(); n != 20 {
		t.Errorf("%d were allowed, want 20", n)
	}
}

// TestCounters_ForgetWhatHasLeftTheWindow checks that a window looks back at least its length,
// and at most a sixtieth more.
func TestCounters_ForgetWhatHasLeftTheWindow(t *testing.T) {
	h := &history{}
	k, c := New(Config{History: h}), counter(t, byAgent)
	allow(t, k, c, email("a"), noon)
	h.rows = append(h.rows, row("a", noon, nil))
	for after, want := range map[time.Duration]int64{0: 2, time.Hour: 2, time.Hour + 61*time.Second: 1} {
		if got := read(t, k, c, email("a"), noon.Add(after)).Counts()[0].N; got != want {
			t.Errorf("after %v: %d, want %d", after, got, want)
		}
	}
}

// TestCounters_NeverCountTooFew checks the bounds of a count. It is at least the number of
// allowances in the window, and at most their number in a window that is a sixtieth longer.
func TestCounters_NeverCountTooFew(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := counter(t, byAgent)
	for range 50 {
		k := New(Config{History: &history{}})
		var times []time.Time
		at := noon
		for range 300 {
			at = at.Add(time.Duration(random.IntN(90)) * time.Second)
			got := read(t, k, c, email("a"), at).Counts()[0].N - 1
			within := func(d time.Duration) (n int64) {
				for _, was := range times {
					if !was.Before(at.Add(-d)) {
						n++
					}
				}
				return n
			}
			if least, most := within(time.Hour), within(time.Hour+time.Minute); got < least || got > most {
				t.Fatalf("at %v: %d, want between %d and %d", at, got, least, most)
			}
			allow(t, k, c, email("a"), at)
			times = append(times, at)
		}
	}
}

func row(agent string, at time.Time, change func(*storage.Record)) *storage.Record {
	r := &storage.Record{
		OrganizationID: "acme", DecisionID: storage.IDAt(at).String(), AgentID: agent, ActionType: "email.send", Decision: engine.Allow,
		DecidedAt: at, Cost: &engine.Cost{AmountMinor: 1000, Currency: "EUR"},
	}
	if change != nil {
		change(r)
	}
	return r
}

func outcome(s storage.Settlement) func(*storage.Record) {
	return func(r *storage.Record) { r.Settlement = &s }
}

func TestCounters_AreReadFromTheHistory(t *testing.T) {
	more := int64(2500)
	h := &history{rows: []*storage.Record{
		row("a", noon.Add(-25*time.Hour), nil), // of no window
		row("a", noon.Add(-2*time.Hour), nil),
		row("a", noon.Add(-time.Minute), nil),
		row("a", noon.Add(-time.Minute), func(r *storage.Record) { r.Decision = engine.Deny }),
		row("a", noon.Add(-time.Minute), func(r *storage.Record) { r.OrganizationID = "other" }),
		row("a", noon.Add(-time.Minute), func(r *storage.Record) { r.ActionType, r.Cost.Currency = "other", "USD" }),
		row("a", noon, outcome(storage.Settlement{Outcome: "failed", Releases: true})),
		row("a", noon, outcome(storage.Settlement{Outcome: storage.Executed, AmountMinor: &more, Currency: "EUR"})),
		row("b", noon, nil),
	}}
	k := New(Config{History: h})
	in := email("a")
	in.Cost = &engine.Cost{AmountMinor: 10, Currency: "EUR"}
	if got := read(t, k, counter(t, byAgent), in, noon).Counts()[0].N; got != 3 {
		t.Errorf("a has sent %d with this one, want 3", got)
	}
	if got := read(t, k, counter(t, spent), in, noon).Counts()[0].N; got != 5510 {
		t.Errorf("spent %d with this one, want 5510", got)
	}
	read(t, k, counter(t, byAgent), in, noon)
	if h.asks != 2 {
		t.Errorf("the history was read %d times, want once a counter", h.asks)
	}
}

// settling prepares to settle a decision that was allowed for agent a at noon. No window has
// read that decision.
func settling(t *testing.T, h *history, k *Counters, c *condition.Counter, s storage.Settlement) *Settling {
	t.Helper()
	decided, rows := row("a", noon, nil), h.rows
	h.rows = []*storage.Record{decided}
	p := must.Get(k.Settling(t.Context(), []*condition.Counter{c}, "acme", decided.DecisionID, s, noon))(t)
	h.rows = rows
	return p
}

func TestCounters_CountWhatBecameOfActions(t *testing.T) {
	less, more := int64(400), int64(2500)
	for name, tt := range map[string]struct {
		s    storage.Settlement
		want int64
	}{
		"executed":             {storage.Settlement{Outcome: storage.Executed}, 2000},
		"executed for more":    {storage.Settlement{Outcome: storage.Executed, AmountMinor: &more, Currency: "EUR"}, 3500},
		"executed for less":    {storage.Settlement{Outcome: storage.Executed, AmountMinor: &less, Currency: "EUR", Releases: true}, 1400},
		"of another currency":  {storage.Settlement{Outcome: storage.Executed, AmountMinor: &less, Currency: "USD", Releases: true}, 2000},
		"failed":               {storage.Settlement{Outcome: "failed", Releases: true}, 1000},
		"skipped, with amount": {storage.Settlement{Outcome: "skipped", AmountMinor: &less, Currency: "EUR", Releases: true}, 1000},
		"for less, by itself":  {storage.Settlement{Outcome: storage.Executed, AmountMinor: &less, Currency: "EUR"}, 2000},
		"failed, by itself":    {storage.Settlement{Outcome: "failed"}, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			k, c := New(Config{History: h}), counter(t, spent)
			in := email("a")
			in.Cost = &engine.Cost{AmountMinor: 1000, Currency: "EUR"}
			early := settling(t, h, k, c, tt.s)
			allow(t, k, c, in, noon)
			h.rows = append(h.rows, row("a", noon, nil))
			early.End(t.Context(), true)
			if got := read(t, k, c, in, noon).Counts()[0].N; got != 2000 {
				t.Errorf("a window that was read since the settlement: %d, want it as it was", got)
			}
			settling(t, h, k, c, tt.s).End(t.Context(), false)
			if got := read(t, k, c, in, noon).Counts()[0].N; got != 2000 {
				t.Errorf("with a settlement that was not the first: %d, want it as it was", got)
			}
			settling(t, h, k, c, tt.s).End(t.Context(), true)
			if got := read(t, k, c, in, noon).Counts()[0].N; got != tt.want {
				t.Errorf("with the next %d, want %d", got, tt.want)
			}
			h.rows = []*storage.Record{row("a", noon, outcome(tt.s))}
			if got := read(t, New(Config{History: h}), c, in, noon).Counts()[0].N; got != tt.want {
				t.Errorf("after a restart %d, want %d", got, tt.want)
			}
		})
	}
}

func TestCounters_AreNotKnownWithoutTheHistory(t *testing.T) {
	h := &history{err: errors.New("the store is gone")}
	k, c := New(Config{History: h}), counter(t, byAgent)
	if _, err := k.Read(t.Context(), "acme", []*condition.Counter{c}, &engine.Input{Intent: email("a")}, noon); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("error %v, want the history's", err)
	}
	h.err = nil
	if got := read(t, k, c, email("a"), noon).Counts()[0].N; got != 1 {
		t.Errorf("once it is back: %d, want 1", got)
	}
}

// TestCounters_ForgetAndReadAgain checks that windows are forgotten once they are empty, and that all windows of
// an organization are forgotten once they are too many. Then they are read again. A window with a reservation is
// not forgotten.
func TestCounters_ForgetAndReadAgain(t *testing.T) {
	h := &history{}
	k, c := New(Config{History: h}), counter(t, byAgent)
	held := read(t, k, c, email("held"), noon)
	if !reserve(t, held) {
		t.Fatal("not reserved")
	}
	for i := range 3 * k.max / 1024 {
		allow(t, k, c, email(fmt.Sprint(i)), noon)
	}
	later := noon.Add(2 * time.Hour)
	for i := range 6 * k.max / 1024 {
		allow(t, k, c, email(fmt.Sprint("later", i)), later)
	}
	if n := k.kept; n > 7*k.max/1024 {
		t.Errorf("%d windows are kept, want those that are empty forgotten", n)
	}
	asks := h.asks
	if got := read(t, k, c, email("0"), later).Counts()[0].N; got != 1 || h.asks != asks+1 {
		t.Errorf("of a window that was empty: %d after %d reads, want 1 after 1", got, h.asks-asks)
	}
	k.max = k.kept
	fill(k, held.cells[0].key.seriesKey)
	h.rows = append(h.rows, row("later0", later.Add(-time.Minute), nil))
	read(t, k, c, email("another"), later)
	if got := read(t, k, c, email("later0"), later).Counts()[0].N; got != 2 || h.asks != asks+3 {
		t.Errorf("read again: %d after %d reads, want 2 after 3", got, h.asks-asks)
	}
	if k.window(held.cells[0].key) != held.cells[0].window {
		t.Error("the window of a reservation was forgotten")
	}
	held.Release()
}

// TestCounters_MemoryIsShared checks that an organization with few windows keeps them when another has too many.
func TestCounters_MemoryIsShared(t *testing.T) {
	h := &history{}
	k, c := New(Config{History: h}), counter(t, byAgent)
	k.max = 1000
	counters := []*condition.Counter{c}
	in := func(agent string) *engine.Input { return &engine.Input{Intent: email(agent)} }
	r := must.Get(k.Read(t.Context(), "small", counters, in("a"), noon))(t)
	if !reserve(t, r) {
		t.Fatal("not reserved")
	}
	r.Commit()
	allow(t, k, c, email("a"), noon)
	acme := seriesKey{org: "acme", counter: c.Key}
	fill(k, acme)
	k.sweep(noon)
	if k.window(r.cells[0].key) == nil || len(k.series[acme].windows) != 0 || k.kept != 1 {
		t.Errorf("%d are kept, %d of the organization with too many, want the one of the other", k.kept, len(k.series[acme].windows))
	}
}

// fill gives a series as many windows as are kept at most.
func fill(k *Counters, id seriesKey) {
	for i := range k.max {
		k.series[id].windows[fmt.Sprint("filled", i)] = &window{parts: []storage.WindowPart{{At: 1 << 50, N: 1}}, to: math.MaxInt64}
	}
	k.kept += k.max
}

// TestCounters_MillionWindows checks that a million windows take less than 256 MiB. It tries a
// tenth of them. Each is for an agent and has three parts.
func TestCounters_MillionWindows(t *testing.T) {
	k, c := New(Config{History: &history{}}), counter(t, byAgent)
	before := heap()
	for i := range 100_000 {
		in := email(fmt.Sprintf("team-%04d/agent-%08d-of-some", i%1000, i))
		for n := range 3 {
			allow(t, k, c, in, noon.Add(time.Duration(n)*5*time.Minute))
		}
	}
	took := heap() - before
	t.Logf("%d MiB", took>>20)
	if k.kept != 100_000 || took > 256<<20/10 {
		t.Errorf("%d windows take %d MiB, want 100,000 in 25", k.kept, took>>20)
	}
	runtime.KeepAlive(k)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // of this process
}
