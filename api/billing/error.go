package billing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stripe/stripe-go/v85"
)

// These are the codes of errors. They are part of the API.
const (
	CodeNotConfigured    = "billing_not_configured" // this deployment has no price for the plan
	CodeAlreadyOnPlan    = "already_on_plan"
	CodeNoCustomer       = "no_customer"
	CodeInvalidSignature = "invalid_signature" // the signature is missing, malformed or not Stripe's
	CodeSignatureExpired = "signature_expired" // signed more than Tolerance before or after now
	CodeInvalidEvent     = "invalid_event"     // the signature is valid, but the payload is not an event
	CodeUnavailable      = "billing_unavailable"
)

// Error says that a call was refused. Code and Detail are safe for the caller. The method Error
// also returns the cause, which is for operators. The cause contains no secret.
type Error struct {
	Code, Detail string
	cause        string
}

// Error implements error.
func (e *Error) Error() string {
	if e.cause == "" {
		return e.Code + ": " + e.Detail
	}
	return e.Code + ": " + e.cause
}

// Refusal returns the code and the detail, which are safe for the caller.
func (e *Error) Refusal() (code, detail string) { return e.Code, e.Detail }

func refuse(code, detail string) error { return &Error{Code: code, Detail: detail} }

// missingCustomer reports whether Stripe has deleted the customer.
func missingCustomer(err error) bool {
	var answered *stripe.Error
	return errors.As(err, &answered) && answered.Code == stripe.ErrorCodeResourceMissing && answered.Param == "customer"
}

// failed returns the error of a failed call to Stripe.
func (b *Billing) failed(err error) error {
	return &Error{
		Code:   CodeUnavailable,
		Detail: "The payment provider cannot be reached, or refused. Nothing was changed; try again later.",
		cause:  b.cause(err),
	}
}

// cause describes a failure for operators. It omits Stripe's message, which may quote the
// request.
func (b *Billing) cause(err error) string {
	var answered *stripe.Error
	if errors.As(err, &answered) {
		return fmt.Sprintf("Stripe answered %d: type %q, code %q, parameter %q, request %q",
			answered.HTTPStatusCode, answered.Type, answered.Code, answered.Param, answered.RequestID)
	}
	return strings.NewReplacer(b.cfg.Key, "(key)", b.cfg.WebhookSecret, "(secret)").Replace(err.Error())
}
