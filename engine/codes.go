package engine

import "slices"

// The codes of findings, in check order. The words of their reasons are in checks.go. Only
// [CodePolicyAllowed], [CodeRuleAllow] and [CodeApprovalGranted] come with an allow.
const (
	CodePolicyInactive     Code = "policy.inactive"
	CodeAgentDisabled      Code = "agent.disabled"
	CodeAgentUnregistered  Code = "agent.unregistered"
	CodeAgentMismatch      Code = "agent.mismatch"
	CodeActionDenied       Code = "action.denied"
	CodeActionNotAllowed   Code = "action.not_allowed"
	CodeResourceBlocked    Code = "resource.blocked"
	CodeResourceNotAllowed Code = "resource.not_allowed"
	CodeCostExceeded       Code = "cost.exceeded"
	CodeCostCurrency       Code = "cost.currency"
	CodeUsageLimit         Code = "usage.limit"

	// The objections of the intent's session: see [Session].
	CodeSessionClosed     Code = "session.closed"
	CodeSessionExpired    Code = "session.expired"
	CodeSessionNotAllowed Code = "session.not_allowed"

	// CodeBatchRefused denies an intent that would be allowed alone, in a batch with one
	// that is not: see package decision.
	CodeBatchRefused Code = "batch.refused"

	// CodeApprovalGranted allows an intent whose findings were all approved.
	// CodeApprovalOutOfScope holds it again, because there are findings that were not. The
	// others deny an intent under an approval that was not given or is no longer valid. See
	// package approval.
	CodeApprovalGranted    Code = "approval.granted"
	CodeApprovalOutOfScope Code = "approval.out_of_scope"
	CodeApprovalRejected   Code = "approval.rejected"
	CodeApprovalExpired    Code = "approval.expired"
	CodeApprovalRevoked    Code = "approval.revoked"

	// CodePolicyAllowed is the finding of an intent that nothing objected to
	// and no rule matched.
	CodePolicyAllowed Code = "policy.allowed"

	// These deny: there is no policy or no intent to evaluate, the stored policy no longer
	// compiles, the resource has no single meaning, or a check could not be evaluated.
	CodePolicyMissing      Code = "policy.missing"
	CodePolicyUnreadable   Code = "policy.unreadable"
	CodeResourceUnreadable Code = "resource.unreadable"
	CodeCheckError         Code = "check.error"

	// CodeCoreFinding stands for an external core's own codes. The reason of such a finding
	// starts with the core's code.
	CodeCoreFinding Code = "core.finding"
)

// Codes returns every code there is, in check order.
func Codes() []Code {
	return []Code{
		CodePolicyMissing, CodePolicyUnreadable, CodePolicyInactive, CodeAgentDisabled, CodeAgentUnregistered,
		CodeAgentMismatch,
		CodeActionDenied, CodeActionNotAllowed, CodeResourceUnreadable, CodeResourceBlocked, CodeResourceNotAllowed,
		CodeCostExceeded, CodeCostCurrency, CodeUsageLimit,
		CodeSessionClosed, CodeSessionExpired, CodeSessionNotAllowed, CodeCheckError,
		CodeRuleDeny, CodeRuleApprovalRequired, CodeRuleAllow, CodeBatchRefused, CodeCoreFinding,
		CodeApprovalRejected, CodeApprovalExpired, CodeApprovalRevoked, CodeApprovalOutOfScope, CodeApprovalGranted,
		CodePolicyAllowed,
	}
}

// Outcome returns the outcome of a finding with code c. It returns false for
// [CodeCoreFinding], which comes with any outcome, and for codes that are not writ's.
func (c Code) Outcome() (Decision, bool) {
	switch c {
	case CodePolicyAllowed, CodeRuleAllow, CodeApprovalGranted:
		return Allow, true
	case CodeAgentMismatch, CodeRuleApprovalRequired, CodeApprovalOutOfScope:
		return ApprovalRequired, true
	}
	return Deny, c != CodeCoreFinding && slices.Contains(Codes(), c)
}
