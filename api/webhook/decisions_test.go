package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ.example/writ/api/webhook"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
	"writ.example/writ/storage/storagetest"
)

// follow makes events of the decisions of a new store. It returns a function that commits a decision to it.
func (w *world) follow(most int) (decide func(org string, d engine.Decision, code engine.Code)) {
	w.Helper()
	store, writer := storagetest.NewMemory().Open(), storagetest.NewWriter()
	sink := webhook.NewDecisions(w.docs, most, w.now)
	ctx, stop := context.WithCancel(w.Context())
	f, err := decisionlog.Open(ctx, decisionlog.Config{
		History: store, Positions: w.docs, Sink: sink, Name: "webhooks", Wanted: sink.Wanted,
	})
	must(w.T, err)
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	w.Cleanup(func() { stop(); <-ended })
	return func(org string, d engine.Decision, code engine.Code) {
		w.Helper()
		_, err := writer.Commit(w.Context(), store, writer.Record(org, func(r *storage.Record) {
			r.Decision, r.DecidedAt = d, w.now()
			r.Findings = []storage.Finding{{Code: string(code), Outcome: d, Decides: true, RuleID: "r1"}}
		}))
		must(w.T, err)
	}
}

// TestDecisions checks that webhooks get the decisions that they name, of their organization, and a number
// instead of those beyond the limit.
func TestDecisions(t *testing.T) {
	w, denied, approved := start(t, loopback, nil), receive(t, nil), receive(t, nil)
	decide := w.follow(2)
	w.hook("org", "denied", denied.URL, storage.DecisionDenied)
	w.hook("org", "approved", approved.URL, storage.DecisionApprovedByRule)
	w.hook("org", "neither", approved.URL, storage.ApprovalPending)
	w.offset.Store(int64(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))) // a minute begins
	for range 3 {
		decide("org", engine.Allow, engine.CodeRuleAllow)
		decide("org", engine.Deny, engine.CodeRuleDeny)
		decide("other", engine.Deny, engine.CodeRuleDeny)
	}
	decide("org", engine.Allow, engine.CodePolicyAllowed)
	decide("org", engine.ApprovalRequired, engine.CodeRuleApprovalRequired)
	has := func(rc *receiver, n int, text string) func() bool {
		return func() bool {
			rc.mu.Lock()
			defer rc.mu.Unlock()
			got := 0
			for _, body := range rc.bodies {
				got += strings.Count(body, text)
			}
			return got == n
		}
	}
	w.eventually("denials", has(denied, 2, `"type":"decision.denied"`))
	w.eventually("allows by a rule", has(approved, 2, `"type":"decision.approved_by_rule"`))
	w.eventually("findings", has(denied, 2, `"rule_id":"r1"`))
	w.eventually("ids", has(approved, 2, `"decision_id":"`))
	w.offset.Add(int64(time.Minute))
	w.eventually("the number of further denials", has(denied, 1, `"count":`))
	w.eventually("the number of further allows", has(approved, 1, `"data":{"count":1,"from":"`))
	for name, rc := range map[string]*receiver{"denied": denied, "approved": approved} {
		rc.mu.Lock()
		if len(rc.bodies) != 3 {
			t.Errorf("%s has %d events, want 3: %s", name, len(rc.bodies), strings.Join(rc.bodies, "\n"))
		}
		rc.mu.Unlock()
	}
}

// TestDecisions_SinkFails checks that an organization's events are made once although the store fails for
// another organization.
func TestDecisions_SinkFails(t *testing.T) {
	w := start(t, loopback, nil)
	rc := receive(t, func(rw http.ResponseWriter, _ *http.Request, _ string) { rw.WriteHeader(http.StatusNoContent) })
	w.hook("good", "a", rc.URL, storage.DecisionDenied)
	w.hook("bad", "b", rc.URL, storage.DecisionDenied)
	boxes := &failingBoxes{DecisionBoxes: w.docs}
	sink := webhook.NewDecisions(boxes, 60, w.now)
	_, err := sink.Wanted(t.Context())
	must(t, err)
	var rows []decisionlog.Row
	for i, org := range []string{"good", "bad", "good"} {
		rows = append(rows, decisionlog.Row{Chain: [16]byte{1}, Seq: uint64(i + 1), Record: &storage.Record{
			OrganizationID: org, DecisionID: fmt.Sprint(i), Decision: engine.Deny, DecidedAt: w.now(),
		}})
	}
	for range 5 {
		if err := sink.Send(t.Context(), rows); err == nil {
			t.Error("Send = nil, want the error of the store")
		}
	}
	boxes.works = true
	must(t, sink.Send(t.Context(), rows))
	if good, bad := len(w.deliveries("good", "a")), len(w.deliveries("bad", "b")); good != 2 || bad != 1 {
		t.Errorf("%d and %d events, want 2 and 1", good, bad)
	}
}

// failingBoxes fails for the organization bad until it works.
type failingBoxes struct {
	webhook.DecisionBoxes
	works bool
}

func (b *failingBoxes) FeedDecisions(
	ctx context.Context, org string, chain [16]byte, at time.Time, most int, events []storage.HeadEvent,
) error {
	if org == "bad" && !b.works {
		return storage.ErrUnavailable
	}
	return b.DecisionBoxes.FeedDecisions(ctx, org, chain, at, most, events)
}
