package billing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stripe/stripe-go/v85"

	"writ.example/writ/storage"
)

// sameSession is the time during which an equal request returns the same session. A caller can
// thus safely repeat a call that may have failed.
const sameSession = 10 * time.Minute

// Checkout returns the URL of the page where a browser pays for plan. If org already pays for
// another plan, the page changes its subscription, and sessionID is empty. A second payment
// session would charge org twice.
//
// Checkout refuses with CodeNotConfigured if plan has no price. Other refusals have
// CodeAlreadyOnPlan or CodeUnavailable.
func (b *Billing) Checkout(ctx context.Context, org, plan string) (url, sessionID string, err error) {
	price, ok := b.cfg.Prices[plan]
	if !ok {
		return "", "", refuse(CodeNotConfigured, "This deployment does not sell the plan "+strconv.Quote(plan)+".")
	}
	sub, err := b.subscription(ctx, org)
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	switch {
	case paid(sub.Status) && sub.Plan == plan:
		return "", "",
			refuse(CodeAlreadyOnPlan, "Your organization is on the plan "+plan+
				" already; its portal changes payment and cancellation.")
	case paid(sub.Status) && sub.SubscriptionID != "":
		url, err = b.session(ctx, sub, switchTo(sub, price))
		return url, "", err
	default:
		return b.buy(ctx, sub, plan, price)
	}
}

// buy opens a payment session and returns its URL and id.
func (b *Billing) buy(ctx context.Context, sub *storage.Subscription, plan, price string) (url, id string, err error) {
	metadata := map[string]string{metaOrganization: sub.OrganizationID, metaPlan: plan}
	params := &stripe.CheckoutSessionCreateParams{
		Mode:              stripe.String(string(stripe.CheckoutSessionModeSubscription)),
		LineItems:         []*stripe.CheckoutSessionCreateLineItemParams{{Price: &price, Quantity: stripe.Int64(1)}},
		SuccessURL:        stripe.String(b.portal + "?checkout=success&session_id={CHECKOUT_SESSION_ID}"),
		CancelURL:         stripe.String(b.portal + "?checkout=cancelled"),
		ClientReferenceID: stripe.String(sub.OrganizationID), // at most 128 characters; Stripe accepts 200
		Metadata:          metadata,
		SubscriptionData:  &stripe.CheckoutSessionCreateSubscriptionDataParams{Metadata: metadata},
	}
	if sub.CustomerID != "" {
		params.Customer = stripe.String(sub.CustomerID)
	}
	params.SetIdempotencyKey(b.idempotencyKey(sub, plan, price))
	params.Context = ctx
	s := new(stripe.CheckoutSession)
	err = b.stripe.Call(http.MethodPost, "/v1/checkout/sessions", b.cfg.Key, params, s)
	if err != nil {
		return "", "", b.failed(fmt.Errorf("opening a Checkout: %w", err))
	}
	if s.URL == "" {
		return "", "", b.failed(errors.New("opening a Checkout: no URL in the answer"))
	}
	return s.URL, s.ID, nil
}

// idempotencyKey returns Stripe's Idempotency-Key for a payment session. Equal requests within
// sameSession have equal keys. The key covers the state of the subscription, because a session
// that was paid for an ended subscription is useless.
func (b *Billing) idempotencyKey(sub *storage.Subscription, plan, price string) string {
	window := b.cfg.Now().Truncate(sameSession).Unix()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %d %d", b.portal, sub.OrganizationID, plan, price,
		sub.CustomerID, sub.SubscriptionID, sub.Last.At.Unix(), window))
	return "writ-checkout-" + hex.EncodeToString(sum[:])
}

// Portal returns the URL of the page where a browser manages the payment methods and the
// subscription. Its refusals have CodeNoCustomer or CodeUnavailable.
func (b *Billing) Portal(ctx context.Context, org string) (url string, err error) {
	sub, err := b.subscription(ctx, org)
	if err != nil {
		return "", err
	}
	if sub.CustomerID == "" {
		return "", refuse(CodeNoCustomer, "Your organization has bought nothing yet: start with a checkout.")
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	return b.session(ctx, sub, nil)
}

// session opens Stripe's Billing Portal. If flow is not nil, the Billing Portal starts with flow.
func (b *Billing) session(
	ctx context.Context, sub *storage.Subscription, flow *stripe.BillingPortalSessionCreateFlowDataParams,
) (string, error) {
	params := &stripe.BillingPortalSessionCreateParams{
		Customer: stripe.String(sub.CustomerID), ReturnURL: stripe.String(b.portal), FlowData: flow,
	}
	params.Context = ctx
	s := new(stripe.BillingPortalSession)
	err := b.stripe.Call(http.MethodPost, "/v1/billing_portal/sessions", b.cfg.Key, params, s)
	if missingCustomer(err) {
		return "", refuse(CodeNoCustomer, "The payment provider no longer knows your organization as a customer.")
	}
	if err != nil {
		return "", b.failed(fmt.Errorf("opening the Billing Portal: %w", err))
	}
	if s.URL == "" {
		return "", b.failed(errors.New("opening the Billing Portal: no URL in the answer"))
	}
	return s.URL, nil
}

// switchTo describes the page of the Billing Portal that confirms another price. If the
// subscription's item is not known yet, the customer chooses the price on that page.
func switchTo(sub *storage.Subscription, price string) *stripe.BillingPortalSessionCreateFlowDataParams {
	if sub.ItemID == "" {
		return &stripe.BillingPortalSessionCreateFlowDataParams{
			Type: stripe.String(string(stripe.BillingPortalSessionFlowTypeSubscriptionUpdate)),
			SubscriptionUpdate: &stripe.BillingPortalSessionCreateFlowDataSubscriptionUpdateParams{
				Subscription: stripe.String(sub.SubscriptionID),
			},
		}
	}
	return &stripe.BillingPortalSessionCreateFlowDataParams{
		Type: stripe.String(string(stripe.BillingPortalSessionFlowTypeSubscriptionUpdateConfirm)),
		SubscriptionUpdateConfirm: &stripe.BillingPortalSessionCreateFlowDataSubscriptionUpdateConfirmParams{
			Subscription: stripe.String(sub.SubscriptionID),
			Items: []*stripe.BillingPortalSessionCreateFlowDataSubscriptionUpdateConfirmItemParams{{
				ID: stripe.String(sub.ItemID), Price: stripe.String(price), Quantity: stripe.Int64(1),
			}},
		},
	}
}

// subscription returns the subscription of org, or an empty one if none is stored.
func (b *Billing) subscription(ctx context.Context, org string) (*storage.Subscription, error) {
	sub, err := b.cfg.Store.Subscription(ctx, org)
	if errors.Is(err, storage.ErrNotFound) {
		return &storage.Subscription{OrganizationID: org}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking up the subscription: %w", err)
	}
	return sub, nil
}
