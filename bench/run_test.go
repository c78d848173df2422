package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakes returns a bench of two servers with made-up measurements. others says how many
// processors others use in each round.
func fakes(rounds int, others ...float64) *Bench {
	b := &Bench{
		Header:   Header{Rounds: rounds, MaxOther: .1, Work: Work{Organizations: 1, Policies: 1}},
		Subjects: []*Subject{{About: About{Name: "writ"}, pid: 1}, {About: About{Name: "slow"}, pid: 1}},
		Loads:    []Load{{}, {Share: .5}},
		Raw:      io.Discard, Say: func(string, ...any) {},
	}
	asked := 0
	b.measure = func(_ context.Context, s *Subject, l Load, offered float64) (*Run, error) {
		round := asked / 5 // a round asks five times: two servers with two loads, and the first server again
		asked++
		rate := map[string]int{"writ": 1000, "slow": 250}[s.Name]
		if offered > 0 {
			rate = int(offered)
		}
		r := &Run{Subject: s.Name, Load: l.String(), Offered: offered, Intents: 1, Seconds: 1, Accepted: rate, ServerSeconds: .5}
		if round < len(others) {
			r.Other = others[round]
		}
		r.Scheduled.Record(time.Duration(rate) * time.Microsecond)
		return r, nil
	}
	return b
}

// TestRun_DropsDisturbedRounds checks that disturbed rounds are dropped. Others use the machine
// in two rounds of four.
func TestRun_DropsDisturbedRounds(t *testing.T) {
	var raw bytes.Buffer
	b := fakes(2, .5, .01, .2, .02)
	b.Raw = &raw
	d, err := b.Run(t.Context())
	must(t, err)
	s := d.Summarize()
	if s.Kept != 2 || len(s.Dropped) != 2 || s.OnlyDropped || !strings.Contains(s.Dropped[0], "others used 0.50 processors") {
		t.Errorf("%d rounds kept, dropped %q, want two each", s.Kept, s.Dropped)
	}
	for _, row := range s.Rows {
		if row.Rounds != 2 || row.Scheduled.Count() != 2 {
			t.Errorf("%s, %s is of %d rounds with %d latencies, want those that were kept", row.Subject, row.Load, row.Rounds, row.Scheduled.Count())
		}
	}
	if len(d.Runs) != 4*5 {
		t.Errorf("%d runs in the raw data, want those of dropped rounds too", len(d.Runs))
	}
	back, err := Read(&raw)
	must(t, err)
	var was, is strings.Builder
	must(t, errors.Join(d.Summarize().Print(&was), back.Summarize().Print(&is)))
	if diff := cmp.Diff(was.String(), is.String()); diff != "" {
		t.Errorf("what was read sums up otherwise:\n%s", diff)
	}
}

// TestRun_GivesUpWhereItIsNeverQuiet checks the summary if others use the machine all the time.
// It must show the figures, and it must say that no round is undisturbed.
func TestRun_GivesUpWhereItIsNeverQuiet(t *testing.T) {
	d, err := fakes(2, 1, 1, 1, 1, 1, 1, 1, 1).Run(t.Context())
	must(t, err)
	var out strings.Builder
	s := d.Summarize()
	must(t, s.Print(&out))
	if s.Kept != 0 || len(s.Dropped) != attempts*2 || !strings.Contains(out.String(), "EVERY ROUND WAS DISTURBED") {
		t.Errorf("%d rounds kept, %d dropped, want none of %d\n%s", s.Kept, len(s.Dropped), attempts*2, out.String())
	}
	var page strings.Builder
	if err := d.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "Every round was disturbed") {
		t.Errorf("the report does not say that every round was disturbed, %v", err)
	}
}

// TestRun_WithoutAProcessKnowsNoOthers checks that Other is unknown if a server's own time is
// unknown. The server's time would count as time of others.
func TestRun_WithoutAProcessKnowsNoOthers(t *testing.T) {
	b := fakes(1, 1, 1, 1)
	b.Subjects[1].pid = 0
	d, err := b.Run(t.Context())
	if err != nil || d.Summarize().Kept != 1 || d.Header.MaxOther != 0 {
		t.Errorf("%d rounds kept with others up to %v, %v; want one, any", d.Summarize().Kept, d.Header.MaxOther, err)
	}
}

func TestSummarize_ComparesWithTheFirst(t *testing.T) {
	d, err := fakes(3).Run(t.Context())
	must(t, err)
	s := d.Summarize()
	closed, half := s.find("slow", "closed"), s.find("slow", "50%")
	if closed == nil || half == nil {
		t.Fatalf("rows %v lack slow", s.Rows)
	}
	// slow has a quarter of writ's rate and uses four times the processor time for a decision.
	if closed.RateRatio != .25 || closed.ProcessorRatio != 4 || closed.Processor != 2000 {
		t.Errorf("slow beside writ: rate %v, processor %v of %v µs", closed.RateRatio, closed.ProcessorRatio, closed.Processor)
	}
	if half.Rate != 125 || s.find("writ", "50%").Rate != 500 {
		t.Errorf("half of the closed loop's rate = %v and %v, want each server's own", half.Rate, s.find("writ", "50%").Rate)
	}
	if s.Noise.Rounds != 3 || s.Noise.Rate.Most != 0 || s.Noise.Processor.Most != 0 {
		t.Errorf("noise = %+v, want none", s.Noise)
	}
}

// TestSummarize_JudgesTheTailBesideTheFloor checks that a p99 is divided by that of the floor in the same round: a
// round in which the host was slow meets both.
func TestSummarize_JudgesTheTailBesideTheFloor(t *testing.T) {
	d := new(Data)
	for i, slow := range []time.Duration{1, 10, 2} {
		for subject, p99 := range map[string]time.Duration{"writ": 3, "floor": 2} {
			r := &Run{Round: i + 1, Subject: subject, Load: "50%", Seconds: 1}
			r.Scheduled.Record(slow * p99 * time.Millisecond)
			d.Runs = append(d.Runs, r)
		}
	}
	if got := d.Summarize().find("writ", "50%").FloorRatio; got < 1.49 || got > 1.51 {
		t.Errorf("p99 of the floor's = %v, want 1.5", got)
	}
	d.Runs = slices.DeleteFunc(d.Runs, func(r *Run) bool { return r.Subject == "floor" })
	if got := d.Summarize().find("writ", "50%").FloorRatio; got != 0 {
		t.Errorf("without a floor = %v, want 0", got)
	}
}

func TestParseLoad(t *testing.T) {
	for text, want := range map[string]Load{"closed": {}, "50%": {Share: .5}, "2000": {Rate: 2000},
		"30s:0-100": {Rate: 100, Ramp: 30 * time.Second}, "1m0s:100-0": {From: 100, Ramp: time.Minute}} {
		if got, err := ParseLoad(text); err != nil || got != want || got.String() != text {
			t.Errorf("ParseLoad(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "open", "0", "-1", "NaN", "0%", "Inf%", "30:100", "30s:0", "30s:x", "0s:5", "30s:1--2", "30s:"} {
		if got, err := ParseLoad(text); err == nil {
			t.Errorf("ParseLoad(%q) = %v, want an error", text, got)
		}
	}
}

// TestParseLoads checks that a stage begins where the load before it ends.
func TestParseLoads(t *testing.T) {
	all, err := ParseLoads([]string{"30s:100", "1m:1000", "30s:1000", "10s:0", "500", "5s:50"})
	must(t, err)
	var texts []string
	for _, l := range all {
		texts = append(texts, l.String())
	}
	if got := strings.Join(texts, " "); got != "30s:0-100 1m0s:100-1000 30s:1000-1000 10s:1000-0 500 5s:500-50" {
		t.Errorf("stages = %s", got)
	}
	if _, err := ParseLoads([]string{"50%"}); err == nil || !strings.Contains(err.Error(), "begin with closed") {
		t.Errorf("a share of nothing: %v", err)
	}
}

func TestRead_NamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "no run", "{}\n": "line 1 is not", `{"header":{}}` + "\n": "no run", `{"header":{}}` + "\n{\"run\":\n": "line 2: ",
		`{"header":{}}` + "\n" + `{"header":{}}` + "\n": "line 2 is not",
	} {
		if d, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%q) = %v, %v, want an error with %q", text, d, err, want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(c.of); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("median(%v) = %v, want %v", c.of, got, c.want)
		}
	}
}
