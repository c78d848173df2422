package bench

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Threshold is what a figure of the first subject must not exceed or fall below, under every load.
type Threshold struct {
	figure string
	below  bool
	limit  float64
	text   string
}

// figures are what thresholds are about, in the units of their limits: seconds or numbers.
var figures = map[string]func(*Row) float64{
	"p50":       latency(.5),
	"p90":       latency(.9),
	"p99":       latency(.99),
	"p99.9":     latency(.999),
	"max":       latency(1),
	"processor": func(r *Row) float64 { return r.Processor / 1e6 },
	"rate":      func(r *Row) float64 { return r.Rate },
	"refused":   func(r *Row) float64 { return r.Refused },
	"unsent":    func(r *Row) float64 { return r.Unsent },

	"p99/floor":  func(r *Row) float64 { return r.FloorRatio },
	"mismatched": func(r *Row) float64 { return r.Mismatched },
}

// counted are the figures that are numbers: a second, or a ratio. The others are times.
var counted = map[string]bool{"p99/floor": true, "rate": true, "refused": true, "unsent": true, "mismatched": true}

func latency(q float64) func(*Row) float64 {
	return func(r *Row) float64 { return r.Scheduled.At(q).Seconds() }
}

var comparison = regexp.MustCompile(`^\s*([a-z0-9./]+)\s*([<>])\s*(\S+)\s*$`)

// UnmarshalText reads a threshold, such as p99>10ms or rate<5000. It is exceeded where the comparison holds.
func (t *Threshold) UnmarshalText(text []byte) error {
	m := comparison.FindStringSubmatch(string(text))
	if m == nil || figures[m[1]] == nil {
		return fmt.Errorf("%q: want p50, p90, p99, p99.9, max, processor, rate, refused, unsent, mismatched or "+
			"p99/floor, then > or < and a limit, such as p99>10ms", text)
	}
	*t = Threshold{figure: m[1], below: m[2] == "<", text: strings.TrimSpace(string(text))}
	if counted[t.figure] {
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil || !(n >= 0) {
			return fmt.Errorf("%q: want a number, such as %s%s100", text, m[1], m[2])
		}
		t.limit = n
		return nil
	}
	d, err := time.ParseDuration(m[3])
	if err != nil || d < 0 {
		return fmt.Errorf("%q: want a time with its unit, such as %s%s10ms", text, m[1], m[2])
	}
	t.limit = d.Seconds()
	return nil
}

// Judgment says whether a load of the first subject keeps a threshold. A figure that is not known exceeds it.
type Judgment struct {
	Threshold string `json:"threshold"`
	Load      string `json:"load"`
	Value     string `json:"value"`
	Exceeded  bool   `json:"exceeded"`
	Says      string `json:"-"` // a sentence
}

// Judge holds each load of the first subject to each threshold.
func (s *Summary) Judge(thresholds []Threshold) (all []Judgment) {
	for _, t := range thresholds {
		for _, r := range s.Rows {
			switch {
			case r.Subject != s.Rows[0].Subject:
				continue
			case t.figure == "rate" && strings.HasSuffix(r.Load, "%"):
				continue // the rate of such a load is a share of another one
			case t.figure == "p99/floor" && r.Load == "closed":
				continue // at saturation the latency follows from the rate
			}
			all = append(all, t.judge(r))
		}
	}
	return all
}

func (t Threshold) judge(r *Row) Judgment {
	got := figures[t.figure](r)
	j := Judgment{Threshold: t.text, Load: r.Load, Value: t.show(got)}
	switch {
	case t.figure == "processor" && got == 0:
		j.Exceeded, j.Value, j.Says = true, "", t.text+": the processor time is not known: give --pid or --admin"
	case t.figure == "p99/floor" && got == 0:
		j.Exceeded, j.Value, j.Says = true, "", t.text+": the floor was not measured: give --peer floor"
	default:
		j.Exceeded = t.below && got < t.limit || !t.below && got > t.limit
		j.Says = fmt.Sprintf("%s: load %s has %s", t.text, r.Load, j.Value)
	}
	return j
}

// Exceeded returns a sentence for each judgment that says that a threshold is exceeded.
func Exceeded(judged []Judgment) (sentences []string) {
	for _, j := range judged {
		if j.Exceeded {
			sentences = append(sentences, j.Says)
		}
	}
	return sentences
}

func (t Threshold) show(v float64) string {
	switch {
	case t.figure == "p99/floor":
		return fmt.Sprintf("%.2f", v)
	case counted[t.figure]:
		return fmt.Sprintf("%.0f a second", v)
	}
	return short(time.Duration(v * float64(time.Second)))
}
