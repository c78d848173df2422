package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/api/billing"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

const (
	webhookSecret = "whsec_canary"
	stripeKey     = "sk_test_canary"
	webhookPath   = "/v1/billing/webhook"
)

// seller is a Billing that does not call Stripe. Its methods return err.
type seller struct{ err error }

// Checkout implements Billing.
func (s *seller) Checkout(_ context.Context, org, plan string) (url, sessionID string, err error) {
	return "https://pay.example/" + org + "/" + plan, "cs_1", s.err
}

// Portal implements Billing.
func (s *seller) Portal(_ context.Context, org string) (url string, err error) {
	return "https://pay.example/" + org, s.err
}

// Webhook implements Billing.
func (s *seller) Webhook(context.Context, []byte, string) error { return s.err }

func selling(s Billing) func(*setup) { return func(c *setup) { c.Billing = s } }

// stripe configures a real Billing with an unreachable address for Stripe.
func stripe(t *testing.T) func(*setup) {
	return func(c *setup) {
		b, err := billing.New(billing.Config{
			Store: registry.New(c.Service.Store), Key: stripeKey, WebhookSecret: webhookSecret, URL: "http://127.0.0.1:1", PortalURL: "https://portal.example",
			Prices: map[string]string{"pro": "price_pro", "business": "price_business"}, Now: c.Service.Now, Log: c.Log,
		})
		must(t, err)
		c.Billing = b
	}
}

// event returns a signed Stripe event about the subscription of org.
func (h *harness) event(id, kind, org, status, price string, at time.Time) (body []byte, header string) {
	h.t.Helper()
	body, err := json.Marshal(obj{
		"id": id, "object": "event", "type": "customer.subscription." + kind, "created": at.Unix(),
		"data": obj{"object": obj{
			"id": "sub_" + org, "customer": "cus_1", "status": status, "created": at.Unix(), "metadata": obj{"organization_id": org},
			"items": obj{"data": []obj{{"id": "si_1", "current_period_end": at.AddDate(0, 1, 0).Unix(), "price": obj{"id": price}}}},
		}},
	})
	must(h.t, err)
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	fmt.Fprintf(mac, "%d.%s", h.clock.Now().Unix(), body)
	return body, fmt.Sprintf("t=%d,v1=%x", h.clock.Now().Unix(), mac.Sum(nil))
}

func (h *harness) subscription(org string) (body subscriptionBody) {
	h.t.Helper()
	h.do("GET", "/v1/billing/subscription", h.operator(org), nil).wantStatus(http.StatusOK).into(&body)
	return body
}

func TestSubscription_WithoutOneIsFreeAndActive(t *testing.T) {
	for name, mod := range map[string]func(*setup){"not configured": selling(nil), "configured": selling(&seller{})} {
		h := start(t, mod)
		want := `{"plan":"free","status":"active","cancel_at_period_end":false,` +
			`"limits":{"evaluations_per_month":10000,"agents":5,"policies":10,"rules":100,"tokens":100,"retention_days":7,"csv_export":false},"billing_configured":` +
			fmt.Sprint(name == "configured") + `}`
		r := h.do("GET", "/v1/billing/subscription", h.operator(acme), nil).wantStatus(http.StatusOK)
		same(t, name, want, string(r.body))
	}
}

func TestSubscription_IsThePlanInForce(t *testing.T) {
	h := start(t)
	end := h.clock.Now().AddDate(0, 1, 0)
	sub := &storage.Subscription{OrganizationID: acme, Plan: "business", Status: "past_due", CurrentPeriodEnd: end, CancelAtPeriodEnd: true}
	must(t, storagetest.PutSubscription(context.Background(), h.docs, sub))
	got := h.subscription(acme)
	want := subscriptionBody{
		Plan: "business", Status: "past_due", CurrentPeriodEnd: end, CancelAtPeriodEnd: true,
		Limits: entitlements{planLimits{50_000_000, 10_000, 50_000, 10_000, 10_000, 400}, true},
	}
	same(t, "subscription", want, got, cmp.AllowUnexported(entitlements{}))
	if got := h.subscription(rival); got.Plan != "free" || !got.CurrentPeriodEnd.IsZero() {
		t.Errorf("the rival's subscription = %+v, want free", got)
	}
	sub.Plan = "unheard-of"
	must(t, storagetest.PutSubscription(context.Background(), h.docs, sub))
	if got := h.subscription(acme); got.Plan != "free" {
		t.Errorf("plan = %s, want the one that is enforced, free", got.Plan)
	}
	h.store.fail("Subscription", errors.New("unreachable"))
	h.do("GET", "/v1/billing/subscription", h.operator(acme), nil).wantProblem(http.StatusInternalServerError, codeInternal)
	h.do("GET", "/v1/billing/subscription?plan=pro", h.operator(acme), nil).wantField("plan")
}

func TestCheckoutAndPortal(t *testing.T) {
	h := start(t, selling(&seller{}))
	for _, plan := range []string{"pro", "business"} {
		r := h.do("POST", "/v1/billing/checkout", h.operator(acme), obj{"plan": plan}).wantStatus(http.StatusCreated)
		if want := `{"url":"https://pay.example/acme/` + plan + `","session_id":"cs_1"}`; string(r.body) != want {
			t.Errorf("checkout = %s, want %s", r.body, want)
		}
	}
	for _, body := range []any{nil, obj{}} {
		r := h.do("POST", "/v1/billing/portal", h.operator(acme), body).wantStatus(http.StatusOK)
		if want := `{"url":"https://pay.example/acme"}`; string(r.body) != want {
			t.Errorf("portal = %s, want %s", r.body, want)
		}
	}
	h.do("POST", "/v1/billing/portal", h.operator(acme), obj{"customer": "cus_rival"}).wantField("customer")
	h.do("POST", "/v1/billing/checkout", h.operator(acme), obj{"plan": "pro", "price": "p"}).wantField("price")
	h.do("POST", "/v1/billing/checkout", h.operator(acme), "").wantProblem(http.StatusBadRequest, codeInvalidRequest)
}

func TestCheckout_InvalidPlan(t *testing.T) {
	for _, mod := range []func(*setup){selling(nil), selling(&seller{})} {
		h := start(t, mod)
		for _, body := range []obj{{"plan": "free"}, {"plan": "PRO"}, {"plan": ""}, {}} {
			p := h.do("POST", "/v1/billing/checkout", h.operator(acme), body).wantProblem(http.StatusBadRequest, codeInvalidPlan)
			if len(p.Errors) != 1 || p.Errors[0].Field != "plan" {
				t.Errorf("errors = %v, want one of plan", p.Errors)
			}
		}
	}
}

func TestDecision_Billing_NotConfiguredIs400(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	h.do("POST", "/v1/billing/checkout", op, obj{"plan": "pro"}).wantProblem(http.StatusBadRequest, codeNoBilling)
	h.do("POST", "/v1/billing/portal", op, nil).wantProblem(http.StatusBadRequest, codeNoBilling)
	h.do("POST", webhookPath, "", obj{}).wantProblem(http.StatusBadRequest, codeNoBilling)
}

// TestBilling_CodesAreThoseOfThePackage checks that two constants of this package equal the error
// codes of package billing.
func TestBilling_CodesAreThoseOfThePackage(t *testing.T) {
	if codeNoBilling != billing.CodeNotConfigured || codeNoBillingAnswer != billing.CodeUnavailable {
		t.Errorf("codes = %s, %s, want those of billing", codeNoBilling, codeNoBillingAnswer)
	}
}

func TestBilling_RefusalsAreProblems(t *testing.T) {
	for path, codes := range map[string][]string{
		"checkout": {billing.CodeAlreadyOnPlan, billing.CodeNotConfigured},
		"portal":   {billing.CodeNoCustomer},
		"webhook":  {billing.CodeInvalidSignature, billing.CodeSignatureExpired, billing.CodeInvalidEvent},
	} {
		body := obj{}
		if path == "checkout" {
			body["plan"] = "pro"
		}
		for _, code := range codes {
			h := start(t, selling(&seller{&billing.Error{Code: code, Detail: "Why."}}))
			p := h.do("POST", "/v1/billing/"+path, h.operator(acme), body).wantProblem(http.StatusBadRequest, code)
			if p.Detail != "Why." {
				t.Errorf("%s: detail = %q, want that of the refusal", path, p.Detail)
			}
		}
	}
}

func TestBilling_StripeDownIs502AndLeaksNothing(t *testing.T) {
	h := start(t, stripe(t))
	r := h.do("POST", "/v1/billing/checkout", h.operator(acme), obj{"plan": "pro"})
	r.wantProblem(http.StatusBadGateway, codeNoBillingAnswer)
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if !strings.Contains(h.log.String(), "opening a Checkout") {
		t.Errorf("log = %s, want the cause", h.log)
	}
	for _, text := range []string{string(r.body), h.log.String()} {
		if strings.Contains(text, stripeKey) || strings.Contains(text, webhookSecret) {
			t.Errorf("a secret is in %s", text)
		}
	}
}

// TestDecision_Billing_SignedWebhookMovesThePlanBeforeItAnswers buys a plan, evaluates and cancels
// the plan. A plan that a webhook sets must apply to the very next request.
func TestDecision_Billing_SignedWebhookMovesThePlanBeforeItAnswers(t *testing.T) {
	h := start(t, stripe(t))
	deliver := func(kind, status, price string) {
		t.Helper()
		h.clock.advance(time.Second)
		body, header := h.event(kind+price, kind, acme, status, price, h.clock.Now())
		r := h.do("POST", webhookPath, "", body, headerSignature, header).wantStatus(http.StatusOK)
		if string(r.body) != `{"received":true}` {
			t.Errorf("webhook = %s", r.body)
		}
	}
	want := func(plan, status string) {
		t.Helper()
		if got := h.subscription(acme); got.Plan != plan || got.Status != status {
			t.Errorf("subscription = %+v, want %s, %s", got, plan, status)
		}
	}
	want("free", "active")
	deliver("created", "active", "price_pro")
	want("pro", "active")
	for i := range 6 { // the free plan allows five requests
		h.do("POST", "/v1/agents", h.operator(acme), obj{"name": fmt.Sprint("agent ", i)}).wantStatus(http.StatusCreated)
	}
	deliver("updated", "active", "price_business")
	want("business", "active")
	deliver("updated", "past_due", "price_business")
	want("business", "past_due")
	deliver("deleted", "canceled", "price_business")
	want("free", "canceled")
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "one more"}).wantProblem(http.StatusForbidden, codePlanLimit)
	if got := h.subscription(rival); got.Plan != "free" || got.Status != "active" {
		t.Errorf("the rival's subscription = %+v, want free", got)
	}
}

func TestWebhook_RefusesWhatStripeDidNotSign(t *testing.T) {
	h := start(t, stripe(t))
	body, header := h.event("e1", "created", acme, "active", "price_pro", h.clock.Now())
	forged := strings.Replace(header, "v1=", "v1=00", 1)
	h.do("POST", webhookPath, "", body).wantProblem(http.StatusBadRequest, billing.CodeInvalidSignature)
	h.do("POST", webhookPath, "", nil).wantProblem(http.StatusBadRequest, billing.CodeInvalidSignature)
	h.do("POST", webhookPath, h.operator(acme), body).wantProblem(http.StatusBadRequest, billing.CodeInvalidSignature)
	h.do("POST", webhookPath, "", body, headerSignature, forged).wantProblem(http.StatusBadRequest, billing.CodeInvalidSignature)
	h.do("POST", webhookPath, "", string(body)+" ", headerSignature, header).wantProblem(http.StatusBadRequest, billing.CodeInvalidSignature)
	h.do("POST", webhookPath+"?x=1", "", body, headerSignature, header).wantField("x")
	h.do("POST", webhookPath, "", strings.Repeat(" ", 300<<10), headerSignature, header).wantProblem(http.StatusRequestEntityTooLarge, codeBodyTooLarge)
	h.clock.advance(billing.Tolerance + time.Second)
	h.do("POST", webhookPath, "", body, headerSignature, header).wantProblem(http.StatusBadRequest, billing.CodeSignatureExpired)
	if got := h.subscription(acme); got.Plan != "free" {
		t.Errorf("plan = %s, want free", got.Plan)
	}
}

func TestWebhook_AStoreThatFailsMakesStripeDeliverAgain(t *testing.T) {
	h := start(t, stripe(t))
	body, header := h.event("e1", "created", acme, "active", "price_pro", h.clock.Now())
	h.store.fail("UpdateSubscription", errors.New("unreachable"))
	h.do("POST", webhookPath, "", body, headerSignature, header).wantProblem(http.StatusInternalServerError, codeInternal)
	h.store.fail("UpdateSubscription", nil)
	h.do("POST", webhookPath, "", body, headerSignature, header).wantStatus(http.StatusOK)
	if got := h.subscription(acme); got.Plan != "pro" {
		t.Errorf("plan = %s, want pro", got.Plan)
	}
}
