package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"writ/decision"
	"writ/engine"
	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
	"writ/storage/registry"
)

// The codes of problems. They are part of the interface: clients branch on
// them, and so they never change meaning.
const (
	codeInvalidRequest    = "invalid_request"
	codeUnauthorized      = "unauthorized"
	codeCredentialInURL   = "credential_in_url"
	codeInsufficientScope = "insufficient_scope"
	codeAgentNotBound     = "agent_not_bound"
	codePlanLimit         = "plan_limit"
	codePolicyViolation   = "policy_violation"
	codeUsageLimit        = "usage_limit"
	codeExportNotEntitled = "export_not_entitled"
	codeTooManyExports    = "too_many_exports"
	codeRateLimited       = "rate_limited"
	codeNotFound          = "not_found"
	codeMethodNotAllowed  = "method_not_allowed"
	codeRequestTimeout    = "request_timeout"
	codeIntentConflict    = "intent_conflict"
	codeIntentExpired     = "intent_expired"
	codeConflict          = "conflict"
	codeRuleChanged       = "rule_changed"
	codeListChanged       = "list_changed"
	codeListInUse         = "list_in_use"
	codeBodyTooLarge      = "body_too_large"
	codeMediaType         = "unsupported_media_type"
	codeHeaderTooLarge    = "header_too_large"
	codeMalformed         = "malformed_request"
	codeInternal          = "internal"
	codeOverloaded        = "overloaded"
	codeTimeout           = "timeout"
	codeStoreUnavailable  = "store_unavailable"
	codeInvalidPlan       = "invalid_plan"
	codeNoBilling         = "billing_not_configured"
	codeNoBillingAnswer   = "billing_unavailable"
	codeCoreUnavailable   = "evaluation_core_unavailable"
	codeApprovalDecided   = "approval_decided"
	codeApprovalExpired   = "approval_expired"
	codeApprovalPending   = "approval_pending"
	codeApprovalSelf      = "approval_self"
)

// retryOverload is the Retry-After of an overloaded server, in seconds.
const retryOverload = 1

// problem is an RFC 9457 problem document. Type, Title, Instance and RequestID
// are set when it is written; the rest is what went wrong.
type problem struct {
	Type      string              `json:"type"`
	Title     string              `json:"title"`
	Status    int                 `json:"status"`
	Detail    string              `json:"detail"`
	Instance  string              `json:"instance"`
	Code      string              `json:"code"`
	OK        bool                `json:"ok"` // always false
	RequestID string              `json:"request_id"`
	Errors    []engine.FieldError `json:"errors,omitzero"`

	// What was decided, where the problem is that it was not allowed.
	DecisionID  string           `json:"decision_id,omitzero"`
	Reasons     []string         `json:"reasons,omitzero"`
	AuditDigest string           `json:"audit_digest,omitzero"`
	Receipt     *receipt.Receipt `json:"receipt,omitzero"`

	// retryAfter is in seconds; 0 sends no header.
	retryAfter int
	// rateLimit and ratePolicy are the headers of the limit that refused; empty ones are
	// not sent.
	rateLimit, ratePolicy string
	// allow is the Allow header of a 405.
	allow string
	// logged reports that the cause is logged for operators.
	logged   bool
	replayed bool
}

// refusalError is a problem that a handler chose itself.
type refusalError struct{ problem problem }

// Error implements error.
func (e *refusalError) Error() string { return e.problem.Code + ": " + e.problem.Detail }

func refuse(p problem) error { return &refusalError{p} }

func invalid(field, format string, args ...any) error {
	return &engine.InvalidError{Fields: []engine.FieldError{{Field: field, Message: fmt.Sprintf(format, args...)}}}
}

// aboutError says which resource an error of the store is about.
type aboutError struct {
	resource string
	err      error
}

// about adds to an error the resource, such as "policy", that a 404 names. Another
// organization's document gives the same error as a missing one, and so the same problem.
func about(resource string, err error) error {
	if err == nil {
		return nil
	}
	return &aboutError{resource, err}
}

func (e *aboutError) Error() string { return e.resource + ": " + e.err.Error() }
func (e *aboutError) Unwrap() error { return e.err }

// problemOf is the one place that maps errors to statuses. An unknown error is a generic
// 500.
func problemOf(err error) *problem {
	var (
		chosen *refusalError
		fields *engine.InvalidError
		limit  *storage.LimitError
		sale   billingRefusal
		core   *decision.CoreError
	)
	if p := approvalProblem(err); p != nil {
		return p
	}
	switch {
	case errors.As(err, &chosen):
		p := chosen.problem
		return &p
	case errors.As(err, &fields):
		return &problem{Status: http.StatusBadRequest, Code: codeInvalidRequest,
			Detail: "The request has invalid fields.", Errors: fields.Fields}
	case errors.As(err, &sale):
		return billingProblem(sale)
	case errors.As(err, &core):
		return &problem{
			Status: http.StatusInternalServerError, Code: codeCoreUnavailable,
			retryAfter: int((core.RetryAfter() + time.Second - 1) / time.Second),
			Detail:     "The evaluation core of this deployment made no decision. Nothing was allowed.",
			logged:     false, // the core logs, at a bounded rate
		}
	case errors.Is(err, storage.ErrBadCursor):
		return problemOf(invalid("cursor", "is not a cursor of this list: use the one that the previous page gave"))
	case errors.As(err, &limit):
		return &problem{Status: http.StatusForbidden, Code: codePlanLimit,
			Detail: fmt.Sprintf("Your plan allows %d %s.", limit.Limit, limit.What)}
	case errors.Is(err, decision.ErrNoApproval):
		return notFoundProblem(about("approval", err))
	case errors.Is(err, storage.ErrNotFound):
		return notFoundProblem(err)
	case errors.Is(err, ledger.ErrIntentConflict):
		return &problem{Status: http.StatusConflict, Code: codeIntentConflict,
			Detail: "This intent_id was used before with a different body. Use a new intent_id for a new intent."}
	case errors.Is(err, ledger.ErrIntentExpired):
		return &problem{Status: http.StatusConflict, Code: codeIntentExpired,
			Detail: "This intent_id was decided before, and the decision has been removed after your plan's " +
				"retention. Use a new intent_id for a new intent."}
	case errors.Is(err, ledger.ErrOverloaded), errors.Is(err, ledger.ErrClosed):
		return &problem{Status: http.StatusServiceUnavailable, Code: codeOverloaded,
			Detail: "Too much is waiting. Nothing was decided or stored; try again.", retryAfter: retryOverload}
	case errors.Is(err, registry.ErrStale):
		return &problem{Status: http.StatusServiceUnavailable, Code: codeStoreUnavailable,
			Detail: "The store cannot be read, and what is known of it may be out of date. Nothing was allowed; try " +
				"again.", retryAfter: 1, logged: true}
	case errors.Is(err, storage.ErrImporting):
		return &problem{
			Status: http.StatusServiceUnavailable, Code: codeStoreUnavailable, retryAfter: 60,
			Detail: "The import of your organization into this deployment is not finished. Nothing was stored; try " +
				"again once it is.",
			logged: true,
		}
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrUnknown):
		return &problem{
			Status: http.StatusServiceUnavailable, Code: codeStoreUnavailable, retryAfter: 1,
			Detail: "The store is unavailable. Nothing was allowed; send the same request again: an intent is " +
				"decided once.",
			logged: !errors.Is(err, storage.ErrUnavailable), // it has told operators, once
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &problem{Status: http.StatusServiceUnavailable, Code: codeTimeout,
			Detail: "It took too long. Send the same request again: an intent is decided once.", retryAfter: 1,
			logged: true}
	default:
		return &problem{Status: http.StatusInternalServerError, Code: codeInternal,
			Detail: "Something went wrong here. Nothing was allowed.", logged: true}
	}
}

func notFoundProblem(err error) *problem {
	p := &problem{Status: http.StatusNotFound, Code: codeNotFound, Detail: "There is no such resource."}
	var of *aboutError
	if errors.As(err, &of) {
		p.Code = of.resource + "_" + codeNotFound
		p.Detail = "There is no such " + of.resource + " in your organization."
	}
	return p
}
