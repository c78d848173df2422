package webhook

import (
	"context"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
	"writ.example/writ/storage/registry"
)

// DecisionBoxes stores events about decisions. [registry.Registry] implements it.
type DecisionBoxes interface {
	AllOutboxes(ctx context.Context) ([]registry.Told, error)
	FeedDecisions(ctx context.Context, org string, chain [16]byte, at time.Time, most int,
		events []storage.HeadEvent) error
}

// Decisions makes events of denials, and of allows that a rule decided. It is a [decisionlog.Sink], so each
// process makes the events of its own decisions, and decisions never wait for it. It is not a [Source],
// because a source reads the history by time, and reads it again for rows that were committed late.
type Decisions struct {
	boxes DecisionBoxes
	most  int
	now   func() time.Time
	// wanting has the organizations with a webhook that wants such events, as Wanted found them.
	wanting map[string]bool
}

// NewDecisions returns a sink that makes at most most events of each type, organization and minute. A nil
// now means time.Now.
func NewDecisions(boxes DecisionBoxes, most int, now func() time.Time) *Decisions {
	if now == nil {
		now = time.Now
	}
	return &Decisions{boxes: boxes, most: most, now: now}
}

// Wanted is for [decisionlog.Config].
func (d *Decisions) Wanted(ctx context.Context) (bool, error) {
	told, err := d.boxes.AllOutboxes(ctx)
	d.wanting = make(map[string]bool)
	for _, o := range told {
		for _, w := range o.Webhooks {
			if slices.Contains(w.Events, storage.DecisionDenied) ||
				slices.Contains(w.Events, storage.DecisionApprovedByRule) {
				d.wanting[o.OrganizationID] = true
			}
		}
	}
	return len(d.wanting) > 0, err
}

// Send implements [decisionlog.Sink].
func (d *Decisions) Send(ctx context.Context, rows []decisionlog.Row) error {
	events := make(map[string][]storage.HeadEvent)
	for i := range rows {
		r := rows[i].Record
		if kind := eventOf(r); kind != "" && d.wanting[r.OrganizationID] {
			events[r.OrganizationID] = append(events[r.OrganizationID], storage.HeadEvent{
				Seq: rows[i].Seq, Event: storage.Event{
					Type: kind, Subject: "decision/" + r.DecisionID, Fact: "decided", At: r.DecidedAt,
					Data: decisionData(r, "decision_id"),
				},
			})
		}
	}
	at := d.now().UTC().Truncate(time.Millisecond)
	for org, of := range events {
		if err := d.boxes.FeedDecisions(ctx, org, rows[0].Chain, at, d.most, of); err != nil {
			return err
		}
	}
	return nil
}

// eventOf returns the type of the event about a decision, or nothing.
func eventOf(r *storage.Record) string {
	byRule := func(f storage.Finding) bool { return f.Code == string(engine.CodeRuleAllow) }
	switch {
	case r.Decision == engine.Deny:
		return storage.DecisionDenied
	case r.Decision == engine.Allow && slices.ContainsFunc(r.Findings, byRule):
		return storage.DecisionApprovedByRule
	}
	return ""
}

// Close implements [decisionlog.Sink].
func (d *Decisions) Close() error { return nil }
