package billing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// Tolerance bounds the difference between the time of a webhook's signature and the current time.
const Tolerance = 300 * time.Second

// Webhook processes an event. payload is the unchanged body. signature is the header
// Stripe-Signature. A nil error means that the event is stored or irrelevant. After an error
// Stripe must deliver the event again. An *Error means that payload is not a valid event of
// Stripe. Other errors come from the store.
func (b *Billing) Webhook(ctx context.Context, payload []byte, signature string) error {
	e, err := b.verify(payload, signature)
	if err != nil {
		return err
	}
	org, c, err := b.read(&e)
	if err != nil {
		return err
	}
	if c == nil || org == "" {
		b.cfg.Log.Debug("billing event ignored", "event", e.ID, "type", e.Type)
		return nil
	}
	return b.store(ctx, org, &e, c)
}

// verify returns the event in payload. It refuses an event that Stripe did not sign, or signed too
// long before or after now.
func (b *Billing) verify(payload []byte, signature string) (stripe.Event, error) {
	// The library's time check uses the machine's clock and accepts any future time.
	e, err := stripe.ConstructEvent(payload, signature, b.cfg.WebhookSecret,
		stripe.WithIgnoreTolerance(), stripe.WithIgnoreAPIVersionMismatch())
	switch {
	case errors.Is(err, stripe.ErrWebhookNotSigned), errors.Is(err, stripe.ErrWebhookInvalidHeader),
		errors.Is(err, stripe.ErrWebhookNoValidSignature):
		return e, refuse(CodeInvalidSignature, "The header Stripe-Signature does not sign this body.")
	case err != nil || e.ID == "" || unix(e.Created).IsZero() || e.Data == nil:
		return e, refuse(CodeInvalidEvent, "The body is not an event of Stripe.")
	}
	// The latest event counts. An event from the far future would therefore suppress all later
	// events.
	if time.Unix(e.Created, 0).Sub(b.cfg.Now()) > Tolerance {
		return e, refuse(CodeInvalidEvent, fmt.Sprintf("The event's time is more than %v in the future.", Tolerance))
	}
	at, err := signedAt(signature)
	if err != nil {
		return e, err
	}
	if b.cfg.Now().Sub(at).Abs() > Tolerance {
		return e, refuse(CodeSignatureExpired, fmt.Sprintf("The signature's time is more than %v from now.", Tolerance))
	}
	return e, nil
}

// signedAt returns the time in a header such as t=1795255200,v1=5257a8…. It refuses a header with
// two times, because such a header is ambiguous.
func signedAt(header string) (time.Time, error) {
	var at []string
	for part := range strings.SplitSeq(header, ",") {
		if t, ok := strings.CutPrefix(part, "t="); ok {
			at = append(at, t)
		}
	}
	if len(at) == 1 {
		if unix, err := strconv.ParseInt(at[0], 10, 64); err == nil {
			return time.Unix(unix, 0), nil
		}
	}
	return time.Time{}, refuse(CodeInvalidSignature, "The header Stripe-Signature must hold one time.")
}

// pastPlans returns the subscription's earlier plans after it changed from before to after. Each
// plan occurs once, with the last time at which it was in force.
func pastPlans(before, after *storage.Subscription) []storage.PastPlan {
	plan := cmp.Or(before.Plan, engine.FreePlan)
	if plan == after.Plan {
		return before.Past
	}
	past := slices.DeleteFunc(slices.Clone(before.Past), func(p storage.PastPlan) bool { return p.Plan == plan })
	return append(past, storage.PastPlan{Plan: plan, Until: after.UpdatedAt})
}

// store applies c to the stored subscription of org if c is newer than that subscription.
func (b *Billing) store(ctx context.Context, org string, e *stripe.Event, c change) error {
	var before, after storage.Subscription
	changed := false
	_, err := b.cfg.Store.UpdateSubscription(storage.WithActor(ctx, "stripe:"+e.ID), org,
		func(s *storage.Subscription) bool {
			before = *s
			if changed = c.apply(s); changed {
				s.UpdatedAt = b.cfg.Now().UTC().Truncate(time.Millisecond)
				s.Past = pastPlans(&before, s)
			}
			after = *s
			return changed
		})
	if err != nil && !errors.Is(err, storage.ErrNotFound) { // no subscription was stored before, and c stored none
		return fmt.Errorf("storing the subscription: %w", err)
	}
	level := slog.LevelDebug
	if changed {
		level = slog.LevelInfo
	}
	b.cfg.Log.Log(ctx, level, "billing event", "event", e.ID, "type", e.Type, "organization", org,
		"changed", changed, "was", before.Plan, "plan", after.Plan, "status", after.Status)
	return nil
}
