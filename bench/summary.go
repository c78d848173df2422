package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"writ.example/writ/bench/load"
)

// Row sums up the rounds of one subject under one load that count.
type Row struct {
	Subject, Load string
	Rounds        int
	// The medians over the rounds. Rate is in intents per second. Processor is the server's
	// time for an intent in µs, or 0 if it is not known. Refused is the answers with 503, and
	// Unsent the arrivals that were given up, each per second.
	Rate, Processor, Refused, Unsent float64
	// RateRatio and ProcessorRatio divide this row's figures by those of the first subject under
	// the same load in the same round, and are the medians over the rounds. They are 0 if a round
	// lacks a figure.
	RateRatio, ProcessorRatio float64
	// FloorRatio is the p99 divided by that of the floor under the same load in the same round, the median over the
	// rounds. It is 0 if the floor was not measured.
	FloorRatio float64
	// Scheduled and Sent hold the latencies of all rounds. Worst is the greatest p99 of a
	// round, measured from the schedule.
	Scheduled, Sent load.Latencies
	Late            load.Latencies

	// Decisions counts the decisions of all rounds, by their names. Mismatched is those a second that were not wanted,
	// and Mismatch describes the first of them.
	Decisions  map[string]int
	Mismatched float64
	Mismatch   string

	rates, processors, p99s []float64 // the values of each round
}

// Noise is how much two measurements of the first subject in the same round differ.
type Noise struct {
	Rounds          int
	Rate, Processor Deviation
}

// Deviation is how much two series of a figure differ. 0.02 is 2 %.
type Deviation struct {
	Medians, Most  float64 // Medians compares the medians; Most is the greatest difference in a round
	first, another []float64
}

func (d *Deviation) add(first, another float64) {
	d.first, d.another = append(d.first, first), append(d.another, another)
	d.Most = max(d.Most, deviate(first, another))
	d.Medians = deviate(median(d.first), median(d.another))
}

// deviate returns how much b differs from a. It is 0 if a is not known.
func deviate(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return math.Abs(b/a - 1)
}

// Summary is the part of a report that is computed from the runs.
type Summary struct {
	Rows  []*Row
	Noise Noise
	Kept  int // the number of rounds that count
	// Dropped has the reasons why rounds do not count.
	Dropped []string
	// OnlyDropped says that every round was disturbed. The summary then shows all rounds.
	OnlyDropped bool
}

// Summarize sums up the runs. If every round was dropped, all rounds count.
func (d *Data) Summarize() *Summary {
	s := &Summary{}
	rounds := make(map[int]bool)
	for _, r := range d.Runs {
		if seen := rounds[r.Round]; seen {
			continue
		}
		rounds[r.Round] = true
		if r.Dropped == "" {
			s.Kept++
		} else {
			s.Dropped = append(s.Dropped, fmt.Sprintf("round %d: %s", r.Round, r.Dropped))
		}
	}
	s.OnlyDropped = s.Kept == 0
	byRound := make(map[int]*Run) // the runs of the first subject under its first load
	for _, r := range d.Runs {
		if r.Dropped != "" && !s.OnlyDropped {
			continue
		}
		if r.Again {
			s.Noise.add(byRound[r.Round], r)
			continue
		}
		if r.Subject == d.Runs[0].Subject && r.Load == d.Runs[0].Load {
			byRound[r.Round] = r
		}
		s.row(r).add(r)
	}
	for _, row := range s.Rows {
		row.finish()
	}
	for _, row := range s.Rows {
		if first := s.find(d.Runs[0].Subject, row.Load); first != nil {
			row.RateRatio = paired(row.rates, first.rates)
			row.ProcessorRatio = paired(row.processors, first.processors)
		}
		if floor := s.find(floorName, row.Load); floor != nil {
			row.FloorRatio = paired(row.p99s, floor.p99s)
		}
	}
	return s
}

// paired returns the median of the ratios of two series whose rounds are the same. A disturbance
// of a round meets both.
func paired(of, by []float64) float64 {
	if len(of) != len(by) {
		return 0
	}
	ratios := make([]float64, len(of))
	for i := range of {
		if by[i] == 0 {
			return 0
		}
		ratios[i] = of[i] / by[i]
	}
	return median(ratios)
}

// find returns the row of a subject under a load, or nil.
func (s *Summary) find(subject, load string) *Row {
	for _, row := range s.Rows {
		if row.Subject == subject && row.Load == load {
			return row
		}
	}
	return nil
}

func (s *Summary) row(r *Run) *Row {
	row := s.find(r.Subject, r.Load)
	if row == nil {
		row = &Row{Subject: r.Subject, Load: r.Load, Decisions: make(map[string]int)}
		s.Rows = append(s.Rows, row)
	}
	return row
}

func (w *Row) add(r *Run) {
	w.Rounds++
	w.rates = append(w.rates, r.Rate())
	if r.ServerSeconds > 0 {
		w.processors = append(w.processors, r.Processor())
	}
	w.p99s = append(w.p99s, seconds(r.Scheduled.At(.99)))
	w.Refused += float64(r.Refused) / r.Seconds
	w.Unsent += float64(r.Unsent) / r.Seconds
	w.Mismatched += float64(r.Mismatched) / r.Seconds
	w.Mismatch = cmp.Or(w.Mismatch, r.Mismatch)
	for name, n := range r.Decisions {
		w.Decisions[name] += n
	}
	w.Scheduled.Add(r.Scheduled)
	w.Sent.Add(r.Sent)
	w.Late.Add(r.Lateness)
}

func (w *Row) finish() {
	w.Rate, w.Processor = median(w.rates), median(w.processors)
	w.Refused /= float64(w.Rounds)
	w.Unsent /= float64(w.Rounds)
	w.Mismatched /= float64(w.Rounds)
}

func (n *Noise) add(first, again *Run) {
	if first == nil {
		return
	}
	n.Rounds++
	n.Rate.add(first.Rate(), again.Rate())
	n.Processor.add(first.Processor(), again.Processor())
}

// median returns the median of values. It returns 0 if there are no values.
func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// Print writes the summary as a table.
func (s *Summary) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t,
		"subject\tload\tintents/s\tof first\tµs/intent\tof first\tp50\tp90\tp99\tp99.9\tmax\tp99 sent\t"+
			"p99 of floor\t503/s\tunsent/s\t")
	for _, r := range s.Rows {
		at := func(q float64) string { return short(r.Scheduled.At(q)) }
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.0f\t\n", r.Subject, r.Load,
			r.Rate, percent(r.RateRatio),
			known(r.Processor), percent(r.ProcessorRatio), at(.5), at(.9), at(.99), at(.999), at(1),
			short(r.Sent.At(.99)), percent(r.FloorRatio), r.Refused, r.Unsent)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range s.Rows {
		if outcomes := r.outcomes(); outcomes != "" {
			fmt.Fprintf(w, "%s, %s: %s\n", r.Subject, r.Load, outcomes)
		}
	}
	if s.Noise.Rounds > 0 {
		fmt.Fprintf(w,
			"A/A, the first subject beside itself: medians differ by %.1f %% (rate) and %.1f %% (processor time), a "+
				"round at most by %.1f %% and %.1f %%\n",
			100*s.Noise.Rate.Medians, 100*s.Noise.Processor.Medians, 100*s.Noise.Rate.Most, 100*s.Noise.Processor.Most)
	}
	fmt.Fprintf(w, "%d rounds count, %d dropped\n", s.Kept, len(s.Dropped))
	if s.OnlyDropped {
		fmt.Fprintln(w, "EVERY ROUND WAS DISTURBED: the figures are those of a machine that others were using")
	}
	return nil
}

// outcomes says how often each decision was made, and what was not wanted. It is empty if all decisions were the
// same and wanted.
func (w *Row) outcomes() string {
	sum := 0
	for _, n := range w.Decisions {
		sum += n
	}
	if len(w.Decisions) < 2 && w.Mismatch == "" {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(w.Decisions)) {
		parts = append(parts, fmt.Sprintf("%.1f %% %s", 100*float64(w.Decisions[name])/float64(sum), name))
	}
	text := strings.Join(parts, ", ")
	if w.Mismatch != "" {
		text += fmt.Sprintf("; MISMATCHED %.0f a second, the first: %s", w.Mismatched, w.Mismatch)
	}
	return text
}

// percent formats a ratio. It returns "-" for 0.
func percent(r float64) string {
	if r == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*r)
}

// known formats µs. It returns "-" for 0, which means that the time is not known.
func known(µs float64) string {
	if µs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", µs)
}
