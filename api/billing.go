package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// Billing sells plans. If an error of Billing has the method below, the caller gets the code and
// the detail:
//
//	Refusal() (code, detail string)
//
// The status is then 502 for the code billing_unavailable, and 400 for other codes.
type Billing interface {
	// Checkout returns the URL of the page where a browser pays for plan. sessionID is the id of
	// the payment session, or empty if no session was opened.
	Checkout(ctx context.Context, org, plan string) (url, sessionID string, err error)
	// Portal returns the URL of the page where a browser manages the purchase.
	Portal(ctx context.Context, org string) (url string, err error)
	// Webhook processes an event that the payment provider signed. Webhook must store a change of a
	// plan before it returns. Webhook must not keep payload.
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

// statusOfFree is the status of an organization that never bought a plan.
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

// receivedBody tells the payment provider not to deliver the event again.
type receivedBody struct {
	Received bool `json:"received"` // always true
}

// billingWebhook processes an event of the payment provider. A changed plan is in force before the
// answer is sent.
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
