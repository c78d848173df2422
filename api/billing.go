package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/engine"
	"writ/storage"
)

// Billing sells plans. An error is a refusal that the caller is told if it has the method
//
//	Refusal() (code, detail string)
//
// The status is then 400, or 502 if the code is billing_unavailable. The problem has the code.
type Billing interface {
	// Checkout returns the URL at which a browser pays for plan. sessionID is empty if there is no session.
	Checkout(ctx context.Context, org, plan string) (url, sessionID string, err error)
	// Portal returns the URL at which a browser manages the purchase.
	Portal(ctx context.Context, org string) (url string, err error)
	// Webhook processes an event that the payment provider signed. If the event changes a plan, the change must be in
	// the store when Webhook returns. Webhook must not keep payload.
	Webhook(ctx context.Context, payload []byte, signature string) error
}

// subscriptionBody is the answer of GET /v1/billing/subscription.
type subscriptionBody struct {
	Plan              string       `json:"plan"`
	Status            string       `json:"status"`
	CurrentPeriodEnd  time.Time    `json:"current_period_end,omitzero"`
	CancelAtPeriodEnd bool         `json:"cancel_at_period_end"`
	Limits            entitlements `json:"limits"`
	BillingConfigured bool         `json:"billing_configured"`
}

// entitlements are what a plan grants: its limits and its features.
type entitlements struct {
	planLimits
	CSVExport bool `json:"csv_export"`
}

// statusOfFree is the status of an organization that never bought a plan. Its plan is the free one.
const statusOfFree = "active"

// subscription answers with the plan in force and the state of the purchase.
func (s *Server) subscription(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	plan, err := s.plan(r)
	if err != nil {
		return err
	}
	body := subscriptionBody{
		Plan: plan.Name, Status: statusOfFree, BillingConfigured: s.cfg.Billing != nil,
		Limits: entitlements{newPlanLimits(plan), plan.CSVExport},
	}
	sub, err := s.docs.Subscription(r.ctx, r.who.org)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return fmt.Errorf("looking up the subscription: %w", err)
	default:
		body.Status, body.CancelAtPeriodEnd = sub.Status, sub.CancelAtPeriodEnd
		body.CurrentPeriodEnd = sub.CurrentPeriodEnd
	}
	return r.ok(body)
}

// checkoutBody is the body of POST /v1/billing/checkout.
type checkoutBody struct {
	Plan string `json:"plan"`
}

// sessionBody has the address of a page of the payment provider.
type sessionBody struct {
	URL       string `json:"url"`
	SessionID string `json:"session_id,omitzero"`
}

func checkPlan(_ *request, in *checkoutBody) error {
	if in.Plan != "pro" && in.Plan != "business" {
		return invalid("plan", "must be pro or business")
	}
	return nil
}

// checkout answers with the page where the organization pays for a plan.
func (s *Server) checkout(r *request, in *checkoutBody) error {
	var bad *engine.InvalidError
	if errors.As(checkPlan(r, in), &bad) {
		return refuseWith(problem{Code: codeInvalidPlan, Detail: "There is no such plan to buy.", Errors: bad.Fields})
	}
	if s.cfg.Billing == nil {
		return errNoBilling()
	}
	r.slot.Leave() // the payment provider may take long
	url, id, err := s.cfg.Billing.Checkout(r.ctx, r.who.org, in.Plan)
	if err != nil {
		return fmt.Errorf("checking out: %w", err)
	}
	return r.created(sessionBody{URL: url, SessionID: id})
}

// billingPortal answers with the page where the organization manages its purchase.
func (s *Server) billingPortal(r *request) error {
	if s.cfg.Billing == nil {
		return errNoBilling()
	}
	r.slot.Leave() // the payment provider may take long
	url, err := s.cfg.Billing.Portal(r.ctx, r.who.org)
	if err != nil {
		return fmt.Errorf("opening the billing portal: %w", err)
	}
	return r.ok(sessionBody{URL: url})
}

// receivedBody tells the payment provider that it need not deliver the event again.
type receivedBody struct {
	Received bool `json:"received"` // always true
}

// billingWebhook processes an event of the payment provider. If the event changes a plan, the change is in force before
// the answer is sent.
func (s *Server) billingWebhook(r *request) error {
	if s.cfg.Billing == nil {
		return errNoBilling()
	}
	if err := s.cfg.Billing.Webhook(r.ctx, r.body, r.signature); err != nil {
		return fmt.Errorf("taking in a billing event: %w", err)
	}
	return r.ok(receivedBody{true})
}

func errNoBilling() error {
	return refuse(codeNoBilling, "This deployment does not sell plans.")
}

// billingRefusal is an error of Billing whose code and detail the caller gets.
type billingRefusal interface {
	error
	Refusal() (code, detail string)
}

func billingProblem(e billingRefusal) problem {
	code, detail := e.Refusal()
	p := problem{Code: code, Detail: detail}
	if code == codeNoBillingAnswer {
		p.retryAfter, p.logged = 10, true
	}
	return p
}
