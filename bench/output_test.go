package bench

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"writ.example/writ/authoring/report"
)

// TestOutput checks what other programs read: a threshold under each load that it judges, with its value.
func TestOutput(t *testing.T) {
	s := &Summary{Kept: 2, Rows: []*Row{
		{Subject: "writ", Load: "closed", Rate: 1000, Decisions: map[string]int{"allow": 3, "deny": 1}, Mismatched: 2, Mismatch: "line 1 got <deny>"},
		{Subject: "writ", Load: "50%", Rate: 500}, {Subject: "floor", Load: "closed", Rate: 4000},
	}}
	s.Rows[0].Scheduled.Record(20 * time.Millisecond)
	s.Rows[1].Scheduled.Record(5 * time.Millisecond)
	var limits []Threshold
	for _, text := range []string{"p99>10ms", "mismatched>0", "rate<100"} {
		var th Threshold
		must(t, th.UnmarshalText([]byte(text)))
		limits = append(limits, th)
	}
	judged := s.Judge(limits)
	var text strings.Builder
	must(t, s.WriteJSON(&text, Header{Command: "writ bench"}, judged))
	var got struct {
		Command    string
		Rows       []map[string]any
		Thresholds []struct {
			Threshold, Load, Value string
			Exceeded               bool
		}
	}
	must(t, json.Unmarshal([]byte(text.String()), &got))
	if len(got.Rows) != 3 || got.Rows[0]["mismatched"] != 2.0 || got.Command != "writ bench" {
		t.Errorf("JSON = %s", text.String())
	}
	if p99, ok := got.Rows[0]["p99_ms"].(float64); !ok || p99 < 19.9 || p99 > 20.1 {
		t.Errorf("p99_ms = %v, want 20", got.Rows[0]["p99_ms"])
	}
	var exceeded []string
	for _, j := range got.Thresholds {
		if j.Exceeded {
			exceeded = append(exceeded, j.Threshold+" "+j.Load+" "+j.Value)
		}
	}
	if want := "p99>10ms closed 20.0ms, mismatched>0 closed 2 a second"; strings.Join(exceeded, ", ") != want || len(got.Thresholds) != 5 {
		t.Errorf("thresholds %+v, want 5, of which these are exceeded: %s", got.Thresholds, want)
	}
	for _, c := range []struct {
		disturbed        bool
		failures, errors int
	}{{false, 2, 0}, {true, 0, 5}} {
		s.OnlyDropped = c.disturbed
		text.Reset()
		must(t, s.WriteJUnit(&text, judged))
		var suites report.Suites
		must(t, xml.Unmarshal([]byte(text.String()), &suites))
		suite := suites.Suites[0]
		if suite.Tests != 5 || suite.Failures != c.failures || suite.Errors != c.errors || len(suite.Cases) != 5 ||
			suite.Cases[0].Name != "p99>10ms, load closed" || (suite.Cases[0].Failure != nil) == c.disturbed {
			t.Errorf("JUnit = %s", text.String())
		}
	}
}
