package budget

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
)

// TestWhole_IsReadOnce checks that a counter's windows are read once, however many sessions come.
func TestWhole_IsReadOnce(t *testing.T) {
	h := &history{}
	for i := range 10 {
		h.rows = append(h.rows, row("a", noon, func(r *storage.Record) { r.SessionID = fmt.Sprint("s", i%2) }))
	}
	k, c := New(Config{History: h}), counter(t, `{"count":{"by":["session_id"],"window":"1h"},"gt":20}`)
	for i := range 150 {
		in := email("a")
		in.SessionID = fmt.Sprint("s", i)
		want := int64(1)
		if i < 2 {
			want = 6
		}
		if got := read(t, k, c, in, noon).Counts()[0].N; got != want {
			t.Errorf("session %d: %d with this one, want %d", i, got, want)
		}
	}
	if h.asks != 1 {
		t.Errorf("the history was read %d times, want once", h.asks)
	}
}

// TestWhole_CountsAsOneByOne compares windows that are read together with windows that are read one by one, for
// agents whose names the history has in several forms.
func TestWhole_CountsAsOneByOne(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	scrubber := taggerOf(t, "n", "o")
	agents := []string{"a", "b", mail, "x@corp.example", scrubber.Identity(mail)}
	for _, spec := range []string{
		byAgent, spent, `{"count":{"by":["session_id"],"window":"1h"},"gt":1}`,
		`{"sum":{"field":"cost.amount_minor","currency":"EUR","by":["session_id","agent_id"],"window":"2h"},"gt":1}`,
	} {
		c := counter(t, spec)
		for range 50 {
			h := &history{}
			for range random.IntN(40) {
				names := scrubber.Spellings(agents[random.IntN(len(agents))])
				h.rows = append(h.rows, row(names[random.IntN(len(names))], noon.Add(-time.Duration(random.IntN(180))*time.Minute), func(r *storage.Record) {
					r.SessionID = fmt.Sprint(random.IntN(3))
				}))
			}
			together, apart := New(Config{History: h, Scrub: scrubber}), New(Config{History: h, Scrub: scrubber})
			for range 20 {
				in := email(agents[random.IntN(len(agents))])
				in.Cost, in.SessionID = &engine.Cost{AmountMinor: 5, Currency: "EUR"}, fmt.Sprint(random.IntN(3))
				alone := &apart.cells("acme", []*condition.Counter{c}, &engine.Input{Intent: in}, noon).cells[0]
				one := must.Get(apart.read(t.Context(), alone, apart.spellings(alone), noon, nil))(t)
				own := int64(1)
				if c.Sum {
					own = 5
				}
				one.expire(bucketAt(c, noon))
				if got := read(t, together, c, in, noon).Counts()[0].N; got != one.total()+own {
					t.Fatalf("%s of %+v: %d together, %d one by one", spec, in, got-own, one.total())
				}
			}
		}
	}
}

// TestWhole_SettlementsCount checks that a settlement counts in a window that no intent has asked for yet.
func TestWhole_SettlementsCount(t *testing.T) {
	decided := row("b", noon, nil)
	h := &history{rows: []*storage.Record{decided}}
	k, c := New(Config{History: h}), counter(t, byAgent)
	read(t, k, c, email("a"), noon) // reads the windows of both
	p := must.Get(k.Settling(t.Context(), []*condition.Counter{c}, "acme", decided.DecisionID,
		storage.Settlement{Outcome: "failed", Releases: true}, noon))(t)
	p.End(t.Context(), true)
	if got := read(t, k, c, email("b"), noon).Counts()[0].N; got != 1 {
		t.Errorf("%d with this one, want the failed one not to count", got)
	}
}

// TestWhole_TooManyAreReadOneByOne checks that a series that does not fit is read window by window.
func TestWhole_TooManyAreReadOneByOne(t *testing.T) {
	h := &history{}
	for i := range 10 {
		h.rows = append(h.rows, row(fmt.Sprint("a", i), noon, nil))
	}
	k, c := New(Config{History: h}), counter(t, byAgent)
	k.max = 19
	for i := range 10 {
		if got := read(t, k, c, email(fmt.Sprint("a", i)), noon).Counts()[0].N; got != 2 {
			t.Errorf("a%d: %d with this one, want 2", i, got)
		}
	}
	if h.asks != 11 {
		t.Errorf("the history was read %d times, want once for all and once for each", h.asks)
	}
}

// TestWhole_MemoryIsShared checks that an organization with few windows keeps them when another has too many.
func TestWhole_MemoryIsShared(t *testing.T) {
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
		k.series[id].windows[fmt.Sprint("filled", i)] = &window{parts: []storage.WindowPart{{At: 1 << 50, N: 1}}}
	}
	k.kept += k.max
}
