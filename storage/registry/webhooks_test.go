package registry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// hook stores a webhook of org.
func (w *world) hook(org, id string, events ...string) {
	w.Helper()
	if err := w.PutWebhook(w.ctx, org, &storage.Webhook{
		ID: id, URL: "https://example.com", Events: events, Secrets: []storage.WebhookSecret{{Secret: "whsec_" + id}}, CreatedAt: noon,
	}); err != nil {
		w.Fatal(err)
	}
}

// feed stores facts as events of one type. A fact has the form "subject/number".
func (w *world) feed(org string, position string, facts ...string) {
	w.Helper()
	var events []storage.Event
	for _, f := range facts {
		subject, number, _ := strings.Cut(f, "/")
		events = append(events, storage.Event{Type: storage.ApprovalPending, Subject: subject, Fact: number, At: noon, Data: map[string]any{"fact": f}})
	}
	w.Must("Feed", w.Feed(w.ctx, org, "source", position, noon, events))
}

// due returns the due deliveries to a webhook, and the facts in the deliveries.
func (w *world) due(org, id string, at time.Time) (facts []string, due []*storage.Delivery) {
	w.Helper()
	due, err := w.DueDeliveries(w.ctx, org, id, time.Time{}, at, 100)
	w.Must("DueDeliveries", err)
	for _, d := range due {
		_, fact, _ := strings.Cut(string(d.Body), `"fact":"`)
		fact, _, _ = strings.Cut(fact, `"`)
		facts = append(facts, fact)
	}
	return facts, due
}

func (w *world) wantDue(org, id string, at time.Time, want ...string) []*storage.Delivery {
	w.Helper()
	got, due := w.due(org, id, at)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("due to %s (-want +got):\n%s", id, diff)
	}
	return due
}

// end ends an attempt of each delivery in due, with the given status.
func (w *world) end(org string, status string, due ...*storage.Delivery) {
	w.Helper()
	for _, d := range due {
		if d.Attempts++; status == storage.DeliveryPending {
			d.DueAt = noon.Add(time.Minute)
		}
		d.Status = status
	}
	w.Must("EndAttempts", w.EndAttempts(w.ctx, org, noon, due))
}

// wantBox compares the counts of org's outbox.
func (w *world) wantBox(org string, pending, blocked, ended int64) {
	w.Helper()
	all, err := w.AllOutboxes(w.ctx)
	w.Must("AllOutboxes", err)
	for _, o := range all {
		if o.OrganizationID == org {
			if o.Pending != pending || o.Blocked != blocked || o.Ended != ended {
				w.Errorf("outbox of %s: %d pending, %d blocked, %d ended; want %d, %d, %d", org, o.Pending, o.Blocked, o.Ended, pending, blocked, ended)
			}
			return
		}
	}
	w.Errorf("%s has no outbox", org)
}

var webhookTests = []test{
	{"A webhook is of one organization, which has so many at most", func(w *world) {
		for i := range 20 {
			w.hook("org", fmt.Sprintf("w%02d", i), storage.AgentDisabled)
		}
		var limit *storage.LimitError
		if err := w.PutWebhook(w.ctx, "org", &storage.Webhook{ID: "one more"}); !errors.As(err, &limit) {
			w.Errorf("PutWebhook = %v, want a LimitError", err)
		}
		_, err := w.Webhook(w.ctx, "other", "w00")
		w.WantErr("Webhook of another organization", err, storage.ErrNotFound)
		w.WantErr("DeleteWebhook of another organization", w.DeleteWebhook(w.ctx, "other", "w00"), storage.ErrNotFound)
		_, err = w.RotateWebhook(w.ctx, "other", "w00", "s", noon)
		w.WantErr("RotateWebhook of another organization", err, storage.ErrNotFound)
		_, err = w.TellTest(w.ctx, "other", "w00", storage.Event{})
		w.WantErr("TellTest of another organization", err, storage.ErrNotFound)
	}},
	{"The last two secrets are kept", func(w *world) {
		w.hook("org", "a")
		for _, secret := range []string{"2", "3"} {
			got, err := w.RotateWebhook(w.ctx, "org", "a", secret, noon.Add(time.Hour))
			w.Must("RotateWebhook", err)
			if secret == "3" && !cmp.Equal(got.Secrets, []storage.WebhookSecret{{Secret: "3"}, {Secret: "2", Until: noon.Add(time.Hour)}}) {
				w.Errorf("secrets = %v", got.Secrets)
			}
		}
	}},
	{"What is committed is told, and nothing else", func(w *world) {
		w.hook("org", "a", storage.AgentDisabled, storage.PolicyRegistered)
		w.hook("org", "b", storage.PolicyRegistered)
		w.hook("other", "c", storage.AgentDisabled, storage.PolicyRegistered)
		w.Must("PutAgent", w.PutAgent(w.ctx, "org", &engine.Agent{ID: "agent", Status: engine.AgentActive, CreatedAt: noon}, 0))
		for _, status := range []engine.AgentStatus{
			engine.AgentDisabled, engine.AgentDisabled, engine.AgentActive, engine.AgentDisabled,
		} {
			if _, err := w.SetAgentStatus(w.ctx, "org", "agent", status, noon, 0); err != nil {
				w.Fatal(err)
			}
		}
		for range 2 {
			if _, err := w.PutPolicy(w.ctx, &engine.ActionPolicy{OrganizationID: "org", PolicyID: "p", Version: 1}, 0); err != nil {
				w.Fatal(err)
			}
		}
		if _, err := w.PutPolicy(w.ctx, &engine.ActionPolicy{OrganizationID: "org", PolicyID: "p2", Version: 1}, 1); err == nil {
			w.Fatal("a policy beyond the limit is stored")
		}
		w.wantBox("org", 4, 1, 0)
		w.wantBox("other", 0, 0, 0)
		_, due := w.due("org", "a", time.Now().Add(time.Hour))
		w.end("org", storage.DeliveryDelivered, due...)
		_, later := w.due("org", "a", time.Now().Add(time.Hour))
		var types []string
		ids := make(map[string]bool)
		for _, d := range slices.Concat(due, later) {
			types = append(types, d.Type)
			ids[d.MessageID] = true
		}
		slices.Sort(types)
		if want := []string{storage.AgentDisabled, storage.AgentDisabled, storage.PolicyRegistered}; !slices.Equal(types, want) || len(ids) != 3 {
			w.Errorf("told %v with ids %v, want %v", types, ids, want)
		}
	}},
	{"A fact that is found twice is one event", func(w *world) {
		w.hook("org", "a", storage.ApprovalPending)
		w.feed("org", "1", "x/1", "x/1")
		w.feed("org", "2", "x/1", "y/1")
		w.wantBox("org", 2, 0, 0)
		all, err := w.AllOutboxes(w.ctx)
		if err != nil || all[0].Positions["source"] != "2" {
			w.Errorf("position = %v, %v", all[0].Positions, err)
		}
		w.end("org", storage.DeliveryDelivered, w.wantDue("org", "a", noon, "x/1", "y/1")...)
		w.feed("org", "2", "x/1")
		w.wantDue("org", "a", noon)
		w.wantBox("org", 0, 0, 2)
	}},
	{"Nothing is told from before a webhook was there", func(w *world) {
		w.hook("org", "a", storage.ApprovalPending)
		early := storage.Event{Type: storage.ApprovalPending, Subject: "s", At: noon.Add(-time.Millisecond)}
		w.Must("Feed", w.Feed(w.ctx, "org", "source", "", noon, []storage.Event{early}))
		w.wantDue("org", "a", noon)
	}},
	{"Deliveries of one subject follow each other", func(w *world) {
		w.hook("org", "a", storage.ApprovalPending)
		w.hook("org", "b", storage.ApprovalPending)
		w.feed("org", "", "x/1", "x/2", "y/1", "x/3")
		first := w.wantDue("org", "a", noon, "x/1", "y/1")
		w.end("org", storage.DeliveryPending, first...)
		w.wantDue("org", "a", noon)
		w.wantBox("org", 8, 4, 0)
		w.end("org", storage.DeliveryDead, w.wantDue("org", "a", noon.Add(time.Minute), "x/1", "y/1")...)
		w.end("org", storage.DeliveryDelivered, w.wantDue("org", "a", noon, "x/2")...)
		w.wantDue("org", "a", noon, "x/3")
		w.wantDue("org", "b", noon, "x/1", "y/1")
		w.wantBox("org", 5, 2, 3)
	}},
	{"An attempt counts once, whoever made it", func(w *world) {
		w.hook("org", "a", storage.ApprovalPending)
		w.feed("org", "", "x/1")
		_, mine := w.due("org", "a", noon)
		_, theirs := w.due("org", "a", noon)
		w.end("org", storage.DeliveryDelivered, mine...)
		w.end("org", storage.DeliveryPending, theirs...)
		w.wantDue("org", "a", noon.Add(time.Hour))
		w.wantBox("org", 0, 0, 1)
	}},
	{"A dead delivery is replayed with the same id, behind what is under way", func(w *world) {
		w.hook("org", "a", storage.ApprovalPending)
		w.feed("org", "", "x/1", "x/2")
		dead := w.wantDue("org", "a", noon, "x/1")
		w.end("org", storage.DeliveryDead, dead...)
		got, err := w.ReplayDelivery(w.ctx, "org", "a", dead[0].MessageID, noon)
		if err != nil || got.Status != storage.DeliveryPending || got.Attempts != 0 {
			w.Fatalf("ReplayDelivery = %+v, %v", got, err)
		}
		w.wantBox("org", 2, 1, 0)
		w.end("org", storage.DeliveryDelivered, w.wantDue("org", "a", noon, "x/2")...)
		w.wantDue("org", "a", noon, "x/1")
		for _, missing := range [][3]string{{"other", "a", dead[0].MessageID}, {"org", "b", dead[0].MessageID}, {"org", "a", "msg"}} {
			if _, err := w.ReplayDelivery(w.ctx, missing[0], missing[1], missing[2], noon); !errors.Is(err, storage.ErrNotFound) {
				w.Errorf("ReplayDelivery of %v = %v, want %v", missing, err, storage.ErrNotFound)
			}
		}
	}},
	{"Deliveries are listed newest first", func(w *world) {
		w.hook("org", "a", storage.ApprovalPending)
		w.hook("org", "a1", storage.ApprovalPending)
		w.feed("org", "", "x/1", "y/1", "z/1")
		w.end("org", storage.DeliveryDead, w.wantDue("org", "a", noon, "x/1", "y/1", "z/1")[1])
		for status, want := range map[string]string{"": "zyx", storage.DeliveryPending: "zx", storage.DeliveryDead: "y", storage.DeliveryDelivered: ""} {
			got := ""
			for p := (storage.Page{Limit: 1}); ; {
				page, next, err := w.ListDeliveries(w.ctx, "org", "a", status, p)
				if err != nil || len(page) > 1 {
					w.Fatalf("ListDeliveries = %d deliveries, %v", len(page), err)
				}
				for _, d := range page {
					got += d.Subject
				}
				if p.After = next; next == "" {
					break
				}
			}
			if got != want {
				w.Errorf("deliveries of status %q = %s, want %s", status, got, want)
			}
		}
		_, next, err := w.ListDeliveries(w.ctx, "org", "a", "", storage.Page{Limit: 1})
		w.Must("ListDeliveries", err)
		if _, _, err := w.ListDeliveries(w.ctx, "org", "a1", "", storage.Page{Limit: 1, After: next}); !errors.Is(err, storage.ErrBadCursor) {
			w.Errorf("a cursor of another webhook = %v, want %v", err, storage.ErrBadCursor)
		}
	}},
	{"Old deliveries and those of deleted webhooks are removed", func(w *world) {
		w.hook("org", "a", storage.ApprovalPending)
		w.hook("org", "b", storage.ApprovalPending)
		w.feed("org", "", "x/1", "x/2", "y/1")
		w.end("org", storage.DeliveryDelivered, w.wantDue("org", "a", noon, "x/1", "y/1")...)
		w.end("org", storage.DeliveryDead, w.wantDue("org", "a", noon, "x/2")...)
		tidy := func(at time.Time, max, want int) {
			w.Helper()
			if n, err := w.Tidy(w.ctx, "org", at, max); n != want || err != nil {
				w.Errorf("Tidy = %d, %v, want %d", n, err, want)
			}
		}
		tidy(noon.Add(24*time.Hour-1), 10, 0)
		tidy(noon.Add(24*time.Hour), 1, 1)
		tidy(noon.Add(24*time.Hour), 10, 1)
		w.wantBox("org", 3, 1, 1)
		w.Must("DeleteWebhook", w.DeleteWebhook(w.ctx, "org", "b"))
		tidy(noon, 2, 2)
		tidy(noon, 2, 1)
		w.wantBox("org", 0, 0, 1)
		tidy(noon.Add(7*24*time.Hour), 10, 1)
		w.wantBox("org", 0, 0, 0)
	}},
}
