package engine

import "slices"

// The codes of findings, in check order; the words of their reasons are in checks.go. Only [CodePolicyAllowed],
// [CodeRuleAllow] and [CodeApprovalGranted] come with an allow.
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

	// What a session of the intent objects to: see [SessionChecks].
	CodeSessionClosed     Code = "session.closed"
	CodeSessionExpired    Code = "session.expired"
	CodeSessionNotAllowed Code = "session.not_allowed"

	// CodeBatchRefused denies what would be allowed alone and is asked for with
	// what is not: see package decision.
	CodeBatchRefused Code = "batch.refused"

	// CodeApprovalGranted allows what was held, with everything that is found in its way,
	// and was approved. CodeApprovalOutOfScope holds once more what was approved, because
	// something else is in its way. The others deny what is asked for under an approval
	// that was not given or holds no longer. See package approval.
	CodeApprovalGranted    Code = "approval.granted"
	CodeApprovalOutOfScope Code = "approval.out_of_scope"
	CodeApprovalRejected   Code = "approval.rejected"
	CodeApprovalExpired    Code = "approval.expired"
	CodeApprovalRevoked    Code = "approval.revoked"

	// CodePolicyAllowed is the finding of an intent that nothing objected to
	// and no rule matched.
	CodePolicyAllowed Code = "policy.allowed"

	// CodePolicyMissing denies where there is no policy or no intent to
	// evaluate, CodePolicyUnreadable where the stored policy no longer compiles,
	// CodeResourceUnreadable where the resource has no single
	// meaning, CodeCheckError where a check could not be evaluated.
	CodePolicyMissing      Code = "policy.missing"
	CodePolicyUnreadable   Code = "policy.unreadable"
	CodeResourceUnreadable Code = "resource.unreadable"
	CodeCheckError         Code = "check.error"

	// CodeCoreFinding stands for the codes that an external evaluation core made
	// up itself. Such a finding's reason starts with the core's code, not with it.
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

// Outcome returns what a finding of code c amounts to, or false where c is none
// of writ's own codes, or [CodeCoreFinding], which comes with any outcome.
func (c Code) Outcome() (Decision, bool) {
	switch c {
	case CodePolicyAllowed, CodeRuleAllow, CodeApprovalGranted:
		return Allow, true
	case CodeAgentMismatch, CodeRuleApprovalRequired, CodeApprovalOutOfScope:
		return ApprovalRequired, true
	}
	return Deny, c != CodeCoreFinding && slices.Contains(Codes(), c)
}
