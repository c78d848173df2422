package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/engine"
	"writ/storage"
)

// Billing sells plans. An error of it that has the method
//
//	Refusal() (code, detail string)
//
// is a refusal that the caller is told: 400 with the code, or 502 if it is
// billing_unavailable.
type Billing interface {
	// Checkout returns where a browser pays for plan, and the session's id if
	// there is one.
	Checkout(ctx context.Context, org, plan string) (url, sessionID string, err error)
	// Portal returns where a browser manages what was bought.
	Portal(ctx context.Context, org string) (url string, err error)
	// Webhook takes in an event that the payment provider signed. A plan it moves
	// must be in the store when it returns. It must keep nothing of payload.
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

// entitlements are what a plan entitles to, beside its limits.
type entitlements struct {
	planLimits
	CSVExport bool `json:"csv_export"`
}

// statusOfFree is the status of an organization that never bought a plan: the
// free one is in force.
const statusOfFree = "active"

// subscription returns the plan in force and the state of the purchase.
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

// sessionBody is a hosted page of the payment provider.
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

// checkout opens the page where the organization pays for a plan.
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

// billingPortal opens the page where the organization manages what it bought.
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

// receivedBody tells the payment provider not to deliver an event again.
type receivedBody struct {
	Received bool `json:"received"` // always true
}

// billingWebhook takes in an event of the payment provider. A plan that it
// moves is in force before it answers.
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

// billingRefusal is an error of Billing that the caller is told.
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
