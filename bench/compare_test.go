package bench

import (
	"strings"
	"testing"
	"time"
)

// measured returns raw data of rounds with these rates in a closed loop and p99s at half of them. The first subject
// again has the rate times again.
func measured(again float64, rates []float64, p99s []time.Duration) *Data {
	d := &Data{Header: Header{Machine: "m", Processors: 2, Work: Work{Organization: "bench"}}}
	for i, rate := range rates {
		add := func(load string, rate float64, p99 time.Duration, again bool) {
			r := &Run{Round: i + 1, Subject: "writ", Load: load, Again: again, Intents: 1, Seconds: 1, Accepted: int(rate)}
			r.Scheduled.Record(p99)
			d.Runs = append(d.Runs, r)
		}
		add("closed", rate, time.Millisecond, false)
		add("50%", rate/2, p99s[i], false)
		add("closed", rate*again, time.Millisecond, true)
	}
	return d
}

// TestCompare checks what is a regression and what is noise.
func TestCompare(t *testing.T) {
	const ms = time.Millisecond
	steady := []time.Duration{5 * ms, 6 * ms, 5 * ms, 6 * ms}
	rates := []float64{1000, 1010, 990, 1005}
	base := measured(1, rates, steady)
	for name, c := range map[string]struct {
		again float64
		rates []float64
		p99s  []time.Duration
		want  map[string]Difference // by load and figure
	}{
		"the same":                            {1, rates, steady, nil},
		"a tenth less in each":                {1, []float64{900, 909, 890, 905}, steady, map[string]Difference{"closed intents/s": Worse}},
		"a tenth more in each":                {1, []float64{1100, 1111, 1090, 1105}, steady, map[string]Difference{"closed intents/s": Better}},
		"one round that is not worse":         {1, []float64{900, 909, 1000, 905}, steady, nil},
		"a percent less":                      {1, []float64{989, 988, 980, 985}, steady, nil},
		"a tenth less where A/A differs more": {1.2, []float64{900, 909, 890, 905}, steady, nil},
		"a longer tail":                       {1, rates, []time.Duration{9 * ms, 8 * ms, 9 * ms, 7 * ms}, map[string]Difference{"50% p99 µs": Worse}},
		"a tail within the rounds of A":       {1, rates, []time.Duration{6 * ms, 6 * ms, 6 * ms, 6 * ms}, nil},
	} {
		got, err := Compare(base, measured(c.again, c.rates, c.p99s))
		must(t, err)
		for _, f := range got.Figures {
			if f.Figure == "p50 µs" {
				continue // one latency a round is all percentiles
			}
			want := c.want[f.Load+" "+f.Figure]
			if want == "" {
				want = NoDifference
			}
			if f.Verdict != want {
				t.Errorf("%s: %s, %s: %s, want %s", name, f.Load, f.Figure, f.Verdict, want)
			}
		}
		worse := 0
		for _, f := range got.Figures {
			if f.Verdict == Worse {
				worse++
			}
		}
		if len(got.Worse()) != worse {
			t.Errorf("%s: %q, want a sentence for each regression", name, got.Worse())
		}
	}
}

// TestCompare_Refuses checks what cannot be compared, and what is said of what can hardly be.
func TestCompare_Refuses(t *testing.T) {
	p99s := []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
	a, b := measured(1, []float64{1000, 1000}, p99s), measured(1, []float64{500, 500}, p99s)
	got, err := Compare(a, b)
	must(t, err)
	if got.Figures[0].Verdict != TooFew || len(got.Worse()) != 0 || got.Pairs != 2 {
		t.Errorf("%+v: two rounds are too few", got)
	}
	b.Header.Machine = "another"
	b.Runs[0].Dropped, b.Runs[1].Dropped, b.Runs[2].Dropped = "busy", "busy", "busy"
	got, err = Compare(a, b)
	must(t, err)
	if got.Pairs != 1 || !strings.Contains(got.Places, "machine: m and another") || got.Disturbed {
		t.Errorf("%+v: want one pair, and that the machines differ", got)
	}
	b.Header.Work.Rules = 3
	if _, err := Compare(a, b); err == nil || !strings.Contains(err.Error(), "the work differs") {
		t.Errorf("another work: %v", err)
	}
	b.Header.Work.Rules = 0
	for _, r := range b.Runs {
		r.Subject = "other"
	}
	if _, err := Compare(a, b); err == nil || !strings.Contains(err.Error(), "in common") {
		t.Errorf("nothing in common: %v", err)
	}
}
