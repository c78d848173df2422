package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestThreshold_Refuses checks that what is no threshold is refused, with the form that is one.
func TestThreshold_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"":            "such as p99>10ms",
		"p99":         "such as p99>10ms",
		"p98>1ms":     "want p50, p90, p99",
		"p99>=10ms":   "want a time with its unit",
		"p99>10":      "such as p99>10ms",
		"p99>-1ms":    "want a time with its unit",
		"rate<5000/s": "such as rate<100",
		"rate<NaN":    "want a number",
		"refused>1ms": "want a number",
		"p99>1ms,max": "want a time with its unit",
	} {
		if err := new(Threshold).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

// TestSummary_Judge checks that a threshold is held against each load of the first subject alone.
func TestSummary_Judge(t *testing.T) {
	row := func(subject, load string, p99 time.Duration, rate, processor float64) *Row {
		r := &Row{Subject: subject, Load: load, Rate: rate, Processor: processor}
		for range 100 {
			r.Scheduled.Record(p99)
		}
		return r
	}
	s := &Summary{Rows: []*Row{
		row("writ", "closed", 20*time.Millisecond, 9000, 40), row("writ", "50%", 5*time.Millisecond, 4500, 90),
		row("floor", "closed", time.Second, 1, 400),
	}}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"p99>30ms", nil},
		{"p99 > 10ms", []string{"p99 > 10ms: load closed has 20.0ms"}},
		{"max>1ms", []string{"max>1ms: load closed has 20.0ms", "max>1ms: load 50% has 5.00ms"}},
		{"rate<9500", []string{"rate<9500: load closed has 9000 a second"}},
		{"rate<9000", nil},
		{"processor>50us", []string{"processor>50us: load 50% has 0.09ms"}},
		{"refused>0", nil},
	} {
		var th Threshold
		if err := th.UnmarshalText([]byte(c.text)); err != nil {
			t.Fatal(err)
		}
		if got := Exceeded(s.Judge([]Threshold{th})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
	ratio := Threshold{figure: "p99/floor", limit: 1.5, text: "p99/floor>1.5"}
	if got := Exceeded(s.Judge([]Threshold{ratio})); len(got) != 1 || !strings.Contains(got[0], "give --peer floor") {
		t.Errorf("a ratio without a floor: %q", got)
	}
	s.Rows[1].FloorRatio = 1.7
	if got := Exceeded(s.Judge([]Threshold{ratio})); !slices.Equal(got, []string{"p99/floor>1.5: load 50% has 1.70"}) {
		t.Errorf("a ratio: %q, want the open loop's alone", got)
	}
	s.Rows[0].Processor = 0
	if got := Exceeded(s.Judge([]Threshold{{figure: "processor", limit: 1, text: "processor>1s"}})); len(got) != 1 ||
		!strings.Contains(got[0], "not known") {
		t.Errorf("a figure that is not known: %q", got)
	}
}
