package bench

import (
	"fmt"
	"io"

	"writ.example/writ/authoring/report"
)

// jsonSummary is the summary for other programs. Times are in ms, or µs of processor.
type jsonSummary struct {
	Command    string     `json:"command"`
	Date       string     `json:"date"`
	Revision   string     `json:"revision"`
	Machine    string     `json:"machine"`
	Rounds     int        `json:"rounds"`
	Dropped    int        `json:"dropped"`
	Disturbed  bool       `json:"disturbed"` // every round was, so that nothing can be said
	Noise      jsonNoise  `json:"noise"`
	Rows       []jsonRow  `json:"rows"`
	Thresholds []Judgment `json:"thresholds"`
}

// jsonNoise is how much the medians of the first subject differ from those of itself: 0.02 is 2 %.
type jsonNoise struct {
	Rate      float64 `json:"rate"`
	Processor float64 `json:"processor"`
}

type jsonRow struct {
	Subject          string         `json:"subject"`
	Load             string         `json:"load"`
	Rate             float64        `json:"rate"`
	RateOfFirst      float64        `json:"rate_of_first,omitzero"`
	Processor        float64        `json:"processor_us,omitzero"`
	ProcessorOfFirst float64        `json:"processor_of_first,omitzero"`
	P50              float64        `json:"p50_ms"`
	P90              float64        `json:"p90_ms"`
	P99              float64        `json:"p99_ms"`
	P999             float64        `json:"p99.9_ms"`
	Max              float64        `json:"max_ms"`
	P99OfFloor       float64        `json:"p99_of_floor,omitzero"`
	Refused          float64        `json:"refused"`
	Unsent           float64        `json:"unsent"`
	Decisions        map[string]int `json:"decisions"`
	Mismatched       float64        `json:"mismatched"`
	Mismatch         string         `json:"mismatch,omitzero"`
}

// WriteJSON writes the summary and the judgments of thresholds as one object.
func (s *Summary) WriteJSON(w io.Writer, h Header, judged []Judgment) error {
	out := jsonSummary{
		Command: h.Command, Date: h.Date, Revision: h.Revision, Machine: h.Machine, Rounds: s.Kept,
		Dropped: len(s.Dropped), Disturbed: s.OnlyDropped,
		Noise: jsonNoise{s.Noise.Rate.Medians, s.Noise.Processor.Medians},
		Rows:  []jsonRow{}, Thresholds: append([]Judgment{}, judged...),
	}
	for _, r := range s.Rows {
		ms := func(q float64) float64 { return 1e3 * seconds(r.Scheduled.At(q)) }
		out.Rows = append(out.Rows, jsonRow{
			Subject: r.Subject, Load: r.Load, Rate: r.Rate, RateOfFirst: r.RateRatio, Processor: r.Processor,
			ProcessorOfFirst: r.ProcessorRatio, P50: ms(.5), P90: ms(.9), P99: ms(.99), P999: ms(.999), Max: ms(1),
			P99OfFloor: r.FloorRatio, Refused: r.Refused, Unsent: r.Unsent, Decisions: r.Decisions,
			Mismatched: r.Mismatched, Mismatch: r.Mismatch,
		})
	}
	return report.WriteJSON(w, out)
}

// WriteJUnit writes the judgments of thresholds as JUnit XML. If every round was disturbed, each case is an error,
// because nothing can be said.
func (s *Summary) WriteJUnit(w io.Writer, judged []Judgment) error {
	out := &report.Suite{Name: "writ bench"}
	for _, j := range judged {
		c := report.Case{Class: "writ bench", Name: fmt.Sprintf("%s, load %s", j.Threshold, j.Load)}
		switch {
		case s.OnlyDropped:
			c.Error = &report.Message{Message: "others used the machine in every round"}
		case j.Exceeded:
			c.Failure = &report.Message{Message: j.Says}
		}
		out.Cases = append(out.Cases, c)
	}
	return report.WriteJUnit(w, out)
}
