package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/api/webhook"
	"writ.example/writ/storage"
)

// webhookBody is the body of POST /v1/webhooks.
type webhookBody struct {
	URL    string   `json:"url"`
	Events []string `json:"events"`
}

// webhookSummary is a webhook without its secrets.
type webhookSummary struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Events    []string  `json:"events"`
	CreatedAt time.Time `json:"created_at"`
	// OldSecretUntil is the time until which the previous secret signs too.
	OldSecretUntil time.Time `json:"old_secret_until,omitzero"`
}

// secretWebhook is the answer to a new webhook or a new secret. No other answer holds a secret.
type secretWebhook struct {
	webhookSummary
	Secret string `json:"secret"`
}

// secretOverlap is how long the old secret signs in addition to the new one.
const secretOverlap = 24 * time.Hour

func summarizeWebhook(r *request, w *storage.Webhook) webhookSummary {
	out := webhookSummary{ID: w.ID, URL: w.URL, Events: w.Events, CreatedAt: w.CreatedAt}
	if last := w.Secrets[len(w.Secrets)-1].Until; last.After(r.now) {
		out.OldSecretUntil = last
	}
	return out
}

// createWebhook makes a webhook. Only this answer shows its secret.
func (s *Server) createWebhook(r *request, in *webhookBody) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("making an id: %w", err)
	}
	w := &storage.Webhook{
		ID: id.String(), URL: in.URL, Events: in.Events, CreatedAt: r.stamp(),
		Secrets: []storage.WebhookSecret{{Secret: webhook.NewSecret()}},
	}
	r.slot.Leave() // the rest only waits for the store
	if err := s.docs.PutWebhook(r.ctx, r.who.org, w); err != nil {
		return fmt.Errorf("storing a webhook: %w", err)
	}
	return r.created(secretWebhook{summarizeWebhook(r, w), w.Secrets[0].Secret})
}

func (s *Server) checkWebhook(_ *request, in *webhookBody) error {
	var bad fieldErrors
	if in.URL == "" {
		bad.add("url", "is required")
	} else if err := s.cfg.Webhooks.CheckURL(in.URL); err != nil {
		bad.add("url", err.Error())
	}
	if len(in.Events) == 0 {
		bad.add("events", "is required")
	}
	known := storage.EventTypes()
	for i, e := range in.Events {
		switch {
		case !slices.Contains(known, e):
			bad.add(fmt.Sprintf("events[%d]", i), "is no event: want one of "+strings.Join(known, ", "))
		case slices.Contains(in.Events[:i], e):
			bad.add(fmt.Sprintf("events[%d]", i), "is named twice")
		}
		if i == len(known) {
			break // one of the events was wrong
		}
	}
	return bad.err()
}

func (s *Server) deleteWebhook(r *request) error {
	if err := s.docs.DeleteWebhook(r.ctx, r.who.org, r.param); err != nil {
		return about("webhook", err)
	}
	return r.answer(http.StatusNoContent, nil)
}

// rotateWebhook gives a webhook a new secret. Only this answer shows that secret.
func (s *Server) rotateWebhook(r *request) error {
	secret := webhook.NewSecret()
	r.slot.Leave() // the rest only waits for the store
	w, err := s.docs.RotateWebhook(r.ctx, r.who.org, r.param, secret, r.stamp().Add(secretOverlap))
	if err != nil {
		return about("webhook", err)
	}
	return r.ok(secretWebhook{summarizeWebhook(r, w), secret})
}

type messageBody struct {
	MessageID string `json:"message_id"`
}

// testWebhook sends a test event to one webhook. The webhook gets the event even if it does not ask
// for events of that type.
func (s *Server) testWebhook(r *request) error {
	r.slot.Leave() // the rest only waits for the store
	id, err := s.docs.TellTest(r.ctx, r.who.org, r.param, storage.Event{
		Type: storage.WebhookTest, Subject: "test/" + r.param, Fact: uuid.NewString(), At: r.stamp(),
		Data: map[string]any{"webhook_id": r.param},
	})
	if err != nil {
		return about("webhook", err)
	}
	return r.answer(http.StatusAccepted, messageBody{id})
}

// delivery is a row of the list of deliveries.
type delivery struct {
	MessageID string    `json:"message_id"`
	Type      string    `json:"type"`
	Subject   string    `json:"subject"`
	Status    string    `json:"status"`
	CreatedAt time.Time `json:"created_at"`
	Attempts  int       `json:"attempts"`
	// DueAt is the time of the next attempt. It is absent while the delivery waits for an earlier delivery of its
	// subject, and after the delivery has ended.
	DueAt       time.Time `json:"due_at,omitzero"`
	AttemptedAt time.Time `json:"attempted_at,omitzero"`
	Answer      int       `json:"answer,omitzero"`
	Problem     string    `json:"problem,omitzero"`
}

func describe(d *storage.Delivery) delivery {
	return delivery{
		MessageID: d.MessageID, Type: d.Type, Subject: d.Subject, Status: d.Status, CreatedAt: d.CreatedAt,
		Attempts: d.Attempts, DueAt: d.DueAt, AttemptedAt: d.AttemptedAt, Answer: d.Answer, Problem: d.Problem,
	}
}

// listDeliveries returns the deliveries to a webhook, the newest first. If the query selects a status, pages may be
// short.
func (s *Server) listDeliveries(r *request) error {
	status, given := r.query.take("status")
	statuses := []string{storage.DeliveryPending, storage.DeliveryDelivered, storage.DeliveryDead}
	if given && !slices.Contains(statuses, status) {
		r.query.refuse(invalid("status", "must be one of %s", strings.Join(statuses, ", ")))
	}
	page, err := r.onlyPage()
	if err != nil {
		return err
	}
	if _, err := s.docs.Webhook(r.ctx, r.who.org, r.param); err != nil {
		return about("webhook", err)
	}
	found, next, err := s.docs.ListDeliveries(r.ctx, r.who.org, r.param, status, page)
	if err != nil {
		return fmt.Errorf("listing deliveries: %w", err)
	}
	items := make([]delivery, len(found))
	for i, d := range found {
		items[i] = describe(d)
	}
	return list(r, items, next)
}

// replayDelivery sends the event of a delivery that has ended once more.
func (s *Server) replayDelivery(r *request, in *messageBody) error {
	r.slot.Leave() // the rest only waits for the store
	d, err := s.docs.ReplayDelivery(r.ctx, r.who.org, r.param, in.MessageID, r.stamp())
	if err != nil {
		return about("delivery", err)
	}
	return r.answer(http.StatusAccepted, describe(d))
}

func checkReplay(_ *request, in *messageBody) error {
	var bad fieldErrors
	bad.name("message_id", in.MessageID)
	return bad.err()
}
