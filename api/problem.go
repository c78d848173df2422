package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"writ.example/writ/api/limit"
	"writ.example/writ/decision"
	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

// These are the codes of problems. They are part of the interface. Clients branch on a code, so its
// meaning never changes.
const (
	codeInvalidRequest    = "invalid_request"
	codeUnauthorized      = "unauthorized"
	codeCredentialInURL   = "credential_in_url"
	codeInsufficientScope = "insufficient_scope"
	codeAgentNotBound     = "agent_not_bound"
	codePolicyNotBound    = "policy_not_bound"
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
	codeIssuedOutOfRange  = "issued_at_out_of_range"
	codeConflict          = "conflict"
	codeRuleChanged       = "rule_changed"
	codeListChanged       = "list_changed"
	codeListInUse         = "list_in_use"
	codeLibraryChanged    = "library_changed"
	codeLibraryInUse      = "library_in_use"
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
	codeCoreFailed        = "evaluation_core_failed"
	codeApprovalDecided   = "approval_decided"
	codeApprovalExpired   = "approval_expired"
	codeApprovalPending   = "approval_pending"
	codeApprovalSelf      = "approval_self"
)

// statuses are the HTTP statuses of the codes. Any other code, such as a code of [Billing], has the
// status 400.
var statuses = map[string]int{
	codeUnauthorized:      http.StatusUnauthorized,
	codeInsufficientScope: http.StatusForbidden,
	codeAgentNotBound:     http.StatusForbidden,
	codePolicyNotBound:    http.StatusForbidden,
	codePlanLimit:         http.StatusForbidden,
	codePolicyViolation:   http.StatusForbidden,
	codeUsageLimit:        http.StatusForbidden,
	codeExportNotEntitled: http.StatusForbidden,
	codeApprovalSelf:      http.StatusForbidden,
	codeNotFound:          http.StatusNotFound,
	codeMethodNotAllowed:  http.StatusMethodNotAllowed,
	codeRequestTimeout:    http.StatusRequestTimeout,
	codeIntentConflict:    http.StatusConflict,
	codeIntentExpired:     http.StatusConflict,
	codeConflict:          http.StatusConflict,
	codeListInUse:         http.StatusConflict,
	codeLibraryInUse:      http.StatusConflict,
	codeApprovalDecided:   http.StatusConflict,
	codeApprovalExpired:   http.StatusConflict,
	codeApprovalPending:   http.StatusConflict,
	codeRuleChanged:       http.StatusPreconditionFailed,
	codeListChanged:       http.StatusPreconditionFailed,
	codeLibraryChanged:    http.StatusPreconditionFailed,
	codeBodyTooLarge:      http.StatusRequestEntityTooLarge,
	codeMediaType:         http.StatusUnsupportedMediaType,
	codeRateLimited:       http.StatusTooManyRequests,
	codeTooManyExports:    http.StatusTooManyRequests,
	codeHeaderTooLarge:    http.StatusRequestHeaderFieldsTooLarge,
	codeInternal:          http.StatusInternalServerError,
	codeCoreFailed:        http.StatusInternalServerError,
	codeNoBillingAnswer:   http.StatusBadGateway,
	codeCoreUnavailable:   http.StatusServiceUnavailable,
	codeOverloaded:        http.StatusServiceUnavailable,
	codeTimeout:           http.StatusServiceUnavailable,
	codeStoreUnavailable:  http.StatusServiceUnavailable,
}

// retryable are the codes of problems that may be gone when the same request is sent again. Only an
// evaluation can be sent again in any case: another request may have been done.
var retryable = map[string]bool{
	codeRequestTimeout:   true,
	codeRateLimited:      true,
	codeTooManyExports:   true,
	codeInternal:         true,
	codeCoreFailed:       true,
	codeNoBillingAnswer:  true,
	codeCoreUnavailable:  true,
	codeOverloaded:       true,
	codeTimeout:          true,
	codeStoreUnavailable: true,
}

// problem is an RFC 9457 problem document. Type, Title, Retryable, Instance and RequestID are set
// when the document is written. The other fields describe the error.
type problem struct {
	Type      string              `json:"type"`
	Title     string              `json:"title"`
	Status    int                 `json:"status"`
	Detail    string              `json:"detail"`
	Instance  string              `json:"instance"`
	Code      string              `json:"code"`
	OK        bool                `json:"ok"` // always false
	Retryable bool                `json:"retryable"`
	RequestID string              `json:"request_id"`
	Errors    []engine.FieldError `json:"errors,omitzero"`

	// These fields describe a decision that did not allow the intent.
	DecisionID  string           `json:"decision_id,omitzero"`
	Reasons     []string         `json:"reasons,omitzero"`
	AuditDigest string           `json:"audit_digest,omitzero"`
	Receipt     *receipt.Receipt `json:"receipt,omitzero"`

	// retryAfter is the Retry-After header, in seconds. 0 sends no header.
	retryAfter int
	// rateLimit and ratePolicy are the headers of the limit that refused the request. An empty
	// header is not sent.
	rateLimit, ratePolicy string
	// allow is the Allow header of a 405.
	allow string
	// logged says whether the cause is logged for operators.
	logged   bool
	replayed bool
}

// refusalError is an error with a problem that a handler chose.
type refusalError struct{ problem problem }

// Error implements error.
func (e *refusalError) Error() string { return e.problem.Code + ": " + e.problem.Detail }

func refuse(code, detail string) error { return refuseWith(problem{Code: code, Detail: detail}) }

// refuseWith returns an error with all fields of p.
func refuseWith(p problem) error { return &refusalError{p} }

func invalid(field, format string, args ...any) error {
	return &engine.InvalidError{Fields: []engine.FieldError{{Field: field, Message: fmt.Sprintf(format, args...)}}}
}

// aboutError is an error of the store together with the kind of resource.
type aboutError struct {
	resource string
	err      error
}

// about adds the kind of the resource, such as "policy", to err. The problem of a 404 names this
// kind. A document of another organization gives the same problem as a missing document.
func about(resource string, err error) error {
	if err == nil {
		return nil
	}
	return &aboutError{resource, err}
}

func (e *aboutError) Error() string { return e.resource + ": " + e.err.Error() }
func (e *aboutError) Unwrap() error { return e.err }

// known maps errors of other packages to problems. The first matching entry counts.
var known = []struct {
	err error
	problem
}{
	{approval.ErrSelf, problem{Code: codeApprovalSelf,
		Detail: "The credential that asked, and the keys of its family, can't decide about it: another must. " +
			"What an operator asked for another operator decides."}},
	{approval.ErrDecided, problem{Code: codeApprovalDecided,
		Detail: "The approval was decided otherwise, or was used. Look it up to see how."}},
	{approval.ErrExpired, problem{Code: codeApprovalExpired,
		Detail: "The approval has expired. Ask for the action with a new intent_id."}},
	{approval.ErrPending, problem{Code: codeApprovalPending,
		Detail: "The approval is pending: there is nothing to revoke. Reject it."}},
	{ledger.ErrIntentConflict, problem{Code: codeIntentConflict,
		Detail: "This intent_id was used before with a different body. Use a new intent_id for a new intent."}},
	{ledger.ErrIntentExpired, problem{Code: codeIntentExpired,
		Detail: "This intent_id was decided before, and the decision has been removed after your plan's " +
			"retention. Use a new intent_id for a new intent."}},
	{ledger.ErrOverloaded, overloaded},
	{ledger.ErrClosed, overloaded},
	{registry.ErrStale, problem{Code: codeStoreUnavailable, retryAfter: 1, logged: true,
		Detail: "The store cannot be read, and what is known of it may be out of date. Nothing was allowed; try " +
			"again."}},
	{storage.ErrImporting, problem{Code: codeStoreUnavailable, retryAfter: 60, logged: true,
		Detail: "The import of your organization into this deployment is not finished. Nothing was stored; try " +
			"again once it is."}},
	{receipt.ErrUnsigned, problem{Code: codeStoreUnavailable, retryAfter: 1, logged: true,
		Detail: "The signing key cannot be used. Nothing was allowed; send the same request again: an intent is " +
			"decided once."}},
	{storage.ErrUnavailable, unavailable(false)}, // the store itself logs this, once
	{storage.ErrUnknown, unavailable(true)},
	{context.DeadlineExceeded, tooLong},
	{context.Canceled, tooLong},
}

var (
	overloaded = problem{Code: codeOverloaded, retryAfter: 1,
		Detail: "Too much is waiting. Nothing was decided or stored; try again."}
	tooLong = problem{Code: codeTimeout, retryAfter: 1, logged: true,
		Detail: "It took too long. Send the same request again: an intent is decided once."}
	internal = problem{Code: codeInternal, logged: true, Detail: "Something went wrong here. Nothing was allowed."}
)

func unavailable(logged bool) problem {
	return problem{Code: codeStoreUnavailable, retryAfter: 1, logged: logged,
		Detail: "The store is unavailable. Nothing was allowed; send the same request again: an intent is " +
			"decided once."}
}

// problemOf returns the problem for an error, with its status. An unknown error becomes a generic
// 500.
func problemOf(err error) *problem {
	p := problemFor(err)
	if p.Status == 0 {
		p.Status = cmp.Or(statuses[p.Code], http.StatusBadRequest)
	}
	return &p
}

func problemFor(err error) problem {
	var (
		chosen *refusalError
		fields *engine.InvalidError
		full   *storage.LimitError
		often  *limit.ExceededError
		sale   billingRefusal
		core   *decision.CoreError
		aged   *decision.AgeError
	)
	switch {
	case errors.As(err, &chosen):
		return chosen.problem
	case errors.As(err, &fields):
		return problem{Code: codeInvalidRequest, Detail: "The request has invalid fields.", Errors: fields.Fields}
	case errors.As(err, &often):
		return problem{Code: codeRateLimited, Detail: often.Detail, retryAfter: often.RetryAfter,
			rateLimit: often.Level, ratePolicy: often.Policy}
	case errors.As(err, &sale):
		return billingProblem(sale)
	case errors.As(err, &core): // the core itself logs this, at a bounded rate
		return coreProblem(core)
	case errors.As(err, &aged):
		return problem{Code: codeIssuedOutOfRange,
			Detail: "The intent was not decided before, and its issued_at is too far from now. Nothing was decided.",
			Errors: []engine.FieldError{{Field: "intent.issued_at",
				Message: "want " + aged.Want() + ": issue a new intent"}}}
	case errors.Is(err, storage.ErrBadCursor):
		return problemFor(invalid("cursor", "is not a cursor of this list: use the one that the previous page gave"))
	case errors.As(err, &full):
		return problem{Code: codePlanLimit, Detail: fmt.Sprintf("Your plan allows %d %s.", full.Limit, full.What)}
	case errors.Is(err, decision.ErrNoApproval):
		return notFound(about("approval", err))
	case errors.Is(err, storage.ErrNotFound):
		return notFound(err)
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.problem
		}
	}
	return internal
}

func coreProblem(core *decision.CoreError) problem {
	p := problem{Code: codeCoreFailed, retryAfter: limit.Seconds(core.RetryAfter()),
		Detail: "The evaluation core of this deployment made no decision. Nothing was allowed."}
	if core.Unanswered() {
		p.Code = codeCoreUnavailable
		p.Detail = "The evaluation core of this deployment does not answer. Nothing was decided; send the same " +
			"request again."
	}
	return p
}

func notFound(err error) problem {
	p := problem{Status: statuses[codeNotFound], Code: codeNotFound, Detail: "There is no such resource."}
	var of *aboutError
	if errors.As(err, &of) {
		p.Code = of.resource + "_" + codeNotFound
		p.Detail = "There is no such " + of.resource + " in your organization."
	}
	return p
}
