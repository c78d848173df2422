package api

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"writ.example/writ/api/webhook"
	"writ.example/writ/storage"
)

// webhook makes a webhook of org and returns its id.
func (h *harness) webhook(org string) string {
	h.t.Helper()
	return h.webhookOf(org, "https://example.com", storage.AgentDisabled).ID
}

func (h *harness) webhookOf(org, url string, events ...string) (out secretWebhook) {
	h.t.Helper()
	h.do("POST", "/v1/webhooks", h.operator(org), obj{"url": url, "events": events}).wantStatus(http.StatusCreated).into(&out)
	return out
}

// deleteWebhooks deletes all webhooks of org, so that new webhooks fit the plan.
func (h *harness) deleteWebhooks(org string) {
	h.t.Helper()
	all, _, err := h.docs.ListWebhooks(h.t.Context(), org, storage.Page{Limit: 20})
	must(h.t, err)
	for _, w := range all {
		must(h.t, h.docs.DeleteWebhook(h.t.Context(), org, w.ID))
	}
}

// testWebhook requests a test event and returns the id of its message.
func (h *harness) testWebhook(org, id string) string {
	h.t.Helper()
	out := read[messageBody](h.do("POST", "/v1/webhooks/"+id+"/test", h.operator(org), nil).wantStatus(http.StatusAccepted))
	return out.MessageID
}

func TestWebhooks_SecretsAreShownOnce(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	made := h.webhookOf(acme, "https://example.com/x?y=z", storage.PolicyRegistered, storage.AgentDisabled)
	if !strings.HasPrefix(made.Secret, "whsec_") || len(made.Secret) != 50 || !made.OldSecretUntil.IsZero() {
		t.Errorf("made %+v, want a secret of 32 bytes", made)
	}
	rotated := read[secretWebhook](h.do("POST", "/v1/webhooks/"+made.ID+"/rotate", op, nil).wantStatus(http.StatusOK))
	if rotated.Secret == made.Secret || !rotated.OldSecretUntil.Equal(h.clock.Now().Add(24*time.Hour)) {
		t.Errorf("rotated to %+v, want another secret and the old one for a day", rotated)
	}
	for _, path := range []string{"/v1/webhooks", "/v1/webhooks/" + made.ID, "/v1/webhooks/" + made.ID + "/deliveries"} {
		if r := h.do("GET", path, op, nil).wantStatus(http.StatusOK); strings.Contains(string(r.body), "whsec") {
			t.Errorf("GET %s shows a secret: %s", path, r.body)
		}
	}
	h.clock.advance(25 * time.Hour)
	shown := read[webhookSummary](h.do("GET", "/v1/webhooks/"+made.ID, h.operator(acme), nil).wantStatus(http.StatusOK))
	if !shown.OldSecretUntil.IsZero() || shown.URL != made.URL || len(shown.Events) != 2 {
		t.Errorf("a day later it is %+v", shown)
	}
}

func TestWebhooks_WhatIsRefused(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Webhooks = webhook.Targets{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	})
	op := h.operator(acme)
	for _, tc := range []struct {
		url    string
		events []string
		field  string
	}{
		{"", []string{"agent.disabled"}, "url"},
		{"https://127.0.0.1", []string{"agent.disabled"}, "url"},
		{"http://93.184.216.34", []string{"agent.disabled"}, "url"},
		{"https://user:pass@example.com", []string{"agent.disabled"}, "url"},
		{"https://example.com", nil, "events"},
		{"https://example.com", []string{"agent.disabled", "nope"}, "events[1]"},
		{"https://example.com", []string{"agent.disabled", "agent.disabled"}, "events[1]"},
		{"https://example.com", []string{storage.WebhookTest}, "events[0]"},
	} {
		h.do("POST", "/v1/webhooks", op, obj{"url": tc.url, "events": tc.events}).wantField(tc.field)
	}
	h.webhookOf(acme, "http://10.0.0.1/", storage.AgentDisabled)
	for range 19 {
		h.webhook(acme)
	}
	h.do("POST", "/v1/webhooks", op, obj{"url": "https://example.com", "events": []string{"agent.disabled"}}).wantProblem(http.StatusForbidden, codePlanLimit)
}

func TestWebhooks_DeliveriesAreListedAndReplayed(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	id := h.webhook(acme)
	agent := h.agent(acme)
	h.do("PATCH", "/v1/agents/"+agent+"/status", op, obj{"status": "disabled"}).wantStatus(http.StatusOK)
	message := h.testWebhook(acme, id)
	deliveries := func(query string) (out page[delivery]) {
		t.Helper()
		h.do("GET", "/v1/webhooks/"+id+"/deliveries"+query, op, nil).wantStatus(http.StatusOK).into(&out)
		return out
	}
	all := deliveries("").Data
	if len(all) != 2 || all[0].MessageID != message || all[1].Type != storage.AgentDisabled || all[1].Subject != "agent/"+agent || all[0].DueAt.IsZero() {
		t.Fatalf("deliveries = %+v", all)
	}
	due, err := h.docs.DueDeliveries(t.Context(), acme, id, time.Time{}, h.clock.Now(), 10)
	must(t, err)
	for _, d := range due {
		d.Attempts, d.Status, d.Answer, d.Problem = 33, storage.DeliveryDead, 500, "status"
		d.Attempts = 1
	}
	must(t, h.docs.EndAttempts(t.Context(), acme, h.clock.Now(), due))
	if dead := deliveries("?status=dead&limit=1"); len(dead.Data) != 1 || dead.Data[0].Problem != "status" || dead.NextCursor == nil {
		t.Errorf("dead letters = %+v", dead)
	}
	if pending := deliveries("?status=pending"); len(pending.Data) != 0 {
		t.Errorf("pending = %+v", pending)
	}
	again := read[delivery](h.do("POST", "/v1/webhooks/"+id+"/replay", op, obj{"message_id": message}).wantStatus(http.StatusAccepted))
	if again.Status != storage.DeliveryPending || again.MessageID != message {
		t.Errorf("replayed: %+v", again)
	}
	h.do("GET", "/v1/webhooks/"+id+"/deliveries?status=x", op, nil).wantField("status")
	h.do("POST", "/v1/webhooks/"+id+"/replay", op, obj{"message_id": "msg_x"}).wantProblem(http.StatusNotFound, "delivery_not_found")
	h.do("DELETE", "/v1/webhooks/"+id, op, nil).wantStatus(http.StatusNoContent)
	h.do("DELETE", "/v1/webhooks/"+id, op, nil).wantProblem(http.StatusNotFound, "webhook_not_found")
	h.do("GET", "/v1/webhooks/"+id+"/deliveries", op, nil).wantProblem(http.StatusNotFound, "webhook_not_found")
}
