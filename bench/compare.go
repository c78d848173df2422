package bench

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
)

// Compared is a figure of a subject under a load in two measurements.
type Compared struct {
	Subject, Load, Figure string
	A, B                  float64 // medians of the rounds, in intents a second or µs
	Ratio                 float64 // the median of B/A over paired rounds
	Verdict               Difference
}

// Difference says what the difference of a figure means.
type Difference string

// The verdicts.
const (
	NoDifference Difference = "noise"
	Worse        Difference = "REGRESSION"
	Better       Difference = "better"
	TooFew       Difference = "too few rounds"
)

// leastPairs is how many paired rounds a verdict needs. leastDifference is what is no difference whatever rounds say.
const (
	leastPairs      = 3
	leastDifference = 0.02
)

// Comparison is what two measurements say beside each other.
type Comparison struct {
	Pairs   int // paired rounds
	Figures []Compared
	// Places says how the places of the two differ, and is empty if they do not.
	Places string
	// Disturbed says that all rounds of one were disturbed.
	Disturbed bool
}

// compared are the figures of a run.
var compared = []struct {
	name   string
	of     func(*Run) float64
	larger bool // more is better
}{
	{"intents/s", (*Run).Rate, true},
	{"µs of processor", (*Run).Processor, false},
	{"p50 µs", func(r *Run) float64 { return float64(r.Scheduled.At(.5).Microseconds()) }, false},
	{"p99 µs", func(r *Run) float64 { return float64(r.Scheduled.At(.99).Microseconds()) }, false},
}

// Compare compares b with a, the base. Rounds are paired in their order. A figure is worse if it is worse in every
// pair, if its median is beyond every round of a, and if it differs by more than the first subject beside itself does
// in either (A/A).
func Compare(a, b *Data) (*Comparison, error) {
	if !reflect.DeepEqual(a.Header.Work, b.Header.Work) {
		return nil, fmt.Errorf("the work differs: %+v and %+v", a.Header.Work, b.Header.Work)
	}
	c := &Comparison{Places: places(a.Header, b.Header)}
	one, other := a.counting(), b.counting()
	c.Disturbed = a.Summarize().OnlyDropped || b.Summarize().OnlyDropped
	for _, key := range keys(a.Runs) {
		of, with := one[key], other[key]
		n := min(len(of), len(with))
		if n == 0 {
			continue
		}
		c.Pairs = max(c.Pairs, n)
		for _, f := range compared {
			if f.larger && key.load != "closed" {
				continue // the rate is the one that was offered
			}
			noise := max(leastDifference, a.noise(f.of), b.noise(f.of))
			if got := compareRounds(values(of[:n], f.of), values(with[:n], f.of), f.larger, noise); got.Ratio > 0 {
				got.Subject, got.Load, got.Figure = key.subject, key.load, f.name
				c.Figures = append(c.Figures, got)
			}
		}
	}
	if len(c.Figures) == 0 {
		return nil, errors.New("they have no subject and load in common")
	}
	return c, nil
}

func compareRounds(a, b []float64, larger bool, noise float64) Compared {
	c := Compared{A: median(a), B: median(b), Ratio: paired(b, a), Verdict: NoDifference}
	worse := func(x, than float64) bool { return larger && x < than || !larger && x > than }
	all := func(holds func(i int) bool) bool {
		for i := range a {
			if !holds(i) {
				return false
			}
		}
		return true
	}
	switch {
	case len(a) < leastPairs:
		c.Verdict = TooFew
	case math.Abs(c.Ratio-1) <= noise:
	case all(func(i int) bool { return worse(b[i], a[i]) && worse(c.B, a[i]) }):
		c.Verdict = Worse
	case all(func(i int) bool { return worse(a[i], b[i]) && worse(a[i], c.B) }):
		c.Verdict = Better
	}
	return c
}

// place is a subject under a load.
type place struct{ subject, load string }

func keys(runs []*Run) (all []place) {
	for _, r := range runs {
		if key := (place{r.Subject, r.Load}); !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// counting returns the runs that count, by subject and load, in the order of the rounds.
func (d *Data) counting() map[place][]*Run {
	only := d.Summarize().OnlyDropped
	all := make(map[place][]*Run)
	for _, r := range d.Runs {
		if !r.Again && (only || r.Dropped == "") {
			all[place{r.Subject, r.Load}] = append(all[place{r.Subject, r.Load}], r)
		}
	}
	return all
}

// noise returns how much the medians of a figure differ between the two measurements of the first subject (A/A).
func (d *Data) noise(of func(*Run) float64) float64 {
	var all Deviation
	first := make(map[int]*Run)
	only := d.Summarize().OnlyDropped
	for _, r := range d.Runs {
		switch key := (place{r.Subject, r.Load}); {
		case r.Dropped != "" && !only:
		case r.Again && first[r.Round] != nil:
			all.add(of(first[r.Round]), of(r))
		case !r.Again && key == (place{d.Runs[0].Subject, d.Runs[0].Load}):
			first[r.Round] = r
		}
	}
	return all.Medians
}

func values(runs []*Run, of func(*Run) float64) []float64 {
	all := make([]float64, len(runs))
	for i, r := range runs {
		all[i] = of(r)
	}
	return all
}

func places(a, b Header) string {
	var all []string
	add := func(what, one, other string) {
		if one != other {
			all = append(all, fmt.Sprintf("%s: %s and %s", what, cmp.Or(one, "none"), cmp.Or(other, "none")))
		}
	}
	add("machine", a.Machine, b.Machine)
	add("processors", fmt.Sprint(a.Processors), fmt.Sprint(b.Processors))
	add("pinned", a.Pinned, b.Pinned)
	add("seconds a load", fmt.Sprint(a.Seconds), fmt.Sprint(b.Seconds))
	return strings.Join(all, "; ")
}

// Worse returns a sentence for each regression.
func (c *Comparison) Worse() (sentences []string) {
	for _, f := range c.Figures {
		if f.Verdict == Worse {
			sentences = append(sentences,
				fmt.Sprintf("%s of %s, load %s: %.1f, was %.1f", f.Figure, f.Subject, f.Load, f.B, f.A))
		}
	}
	return sentences
}

// Print writes the comparison as a table.
func (c *Comparison) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "subject\tload\tfigure\tA\tB\tB of A\tverdict\t")
	for _, f := range c.Figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f\t%.1f\t%s\t%s\t\n", f.Subject, f.Load, f.Figure, f.A, f.B,
			percent(f.Ratio), f.Verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d paired rounds\n", c.Pairs)
	if c.Places != "" {
		fmt.Fprintf(w, "THE PLACES DIFFER: %s\n", c.Places)
	}
	if c.Disturbed {
		fmt.Fprintln(w, "EVERY ROUND OF ONE WAS DISTURBED: the figures are those of a machine that others were using")
	}
	return nil
}
