package registry_test

import (
	"fmt"
	"strings"
	"time"

	"writ.example/writ/storage"
)

// decided feeds n decisions of the heads from first on, one a head.
func (w *world) decided(at time.Time, kind string, first, n, most int) {
	w.Helper()
	var events []storage.HeadEvent
	for i := first; i < first+n; i++ {
		events = append(events, storage.HeadEvent{Seq: uint64(i), Event: storage.Event{
			Type: kind, Subject: fmt.Sprintf("decision/%d", i), Fact: "decided", At: at, Data: map[string]any{"fact": fmt.Sprint(i)},
		}})
	}
	w.Must("FeedDecisions", w.FeedDecisions(w.ctx, "org", [16]byte{1}, at, most, events))
}

// sums returns the bodies of the due deliveries that have a count.
func (w *world) sums(at time.Time) (bodies []string) {
	w.Helper()
	_, due := w.due("org", "a", at)
	for _, d := range due {
		if strings.Contains(string(d.Body), `"count"`) {
			bodies = append(bodies, string(d.Body))
		}
	}
	return bodies
}

var decisionEventTests = []test{
	{"At most so many decisions of a type are events in a minute, and the rest is a number after it", func(w *world) {
		w.hook("org", "a", storage.DecisionDenied, storage.DecisionApprovedByRule)
		w.decided(noon, storage.DecisionDenied, 1, 5, 3)
		w.decided(noon.Add(time.Second), storage.DecisionDenied, 6, 2, 3)
		w.wantDue("org", "a", noon.Add(time.Second), "1", "2", "3")
		w.decided(noon.Add(2*time.Second), storage.DecisionApprovedByRule, 8, 1, 3)
		w.wantBox("org", 4, 0, 0)
		w.Must("SumUp", w.SumUp(w.ctx, "org", noon.Add(59*time.Second)))
		w.WantSame("sums before the minute is over", len(w.sums(noon.Add(time.Hour))), 0)
		later := noon.Add(time.Minute)
		for range 2 {
			w.Must("SumUp", w.SumUp(w.ctx, "org", later))
		}
		w.WantSame("sums", w.sums(later), []string{`{"type":"decision.denied","timestamp":"2026-11-21T12:01:00Z",` +
			`"data":{"count":4,"from":"2026-11-21T12:00:00Z","to":"2026-11-21T12:01:00Z"}}`})
		w.decided(later, storage.DecisionDenied, 9, 4, 3)
		w.wantBox("org", 8, 0, 0)
		w.decided(later.Add(time.Minute), storage.DecisionDenied, 13, 1, 3)
		w.wantBox("org", 10, 1, 0) // the number of the minute before, which follows the first, and the next event
	}},
	{"Decisions that are fed twice are events or counted once", func(w *world) {
		w.hook("org", "a", storage.DecisionDenied)
		w.decided(noon, storage.DecisionDenied, 1, 4, 2)
		w.decided(noon, storage.DecisionDenied, 1, 6, 2)
		w.wantBox("org", 2, 0, 0)
		w.Must("SumUp", w.SumUp(w.ctx, "org", noon.Add(time.Minute)))
		if sums := w.sums(noon.Add(time.Minute)); len(sums) != 1 || !strings.Contains(sums[0], `"count":4`) {
			w.Errorf("sums = %q, want one of 4", sums)
		}
	}},
	{"Decisions that no webhook wants are neither events nor counted", func(w *world) {
		w.hook("org", "a", storage.DecisionDenied)
		w.decided(noon, storage.DecisionApprovedByRule, 1, 3, 2)
		w.decided(noon.Add(-time.Second), storage.DecisionDenied, 4, 3, 2) // from before the webhook
		w.Must("SumUp", w.SumUp(w.ctx, "org", noon.Add(time.Minute)))
		w.wantBox("org", 0, 0, 0)
	}},
}
