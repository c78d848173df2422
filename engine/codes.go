package engine

import "slices"

// The codes of findings, in check order. The texts of their reasons are in checks.go. Only
// [CodePolicyAllowed], [CodeRuleAllow] and [CodeApprovalGranted] come with an allow.
const (
	// CodeOrganizationStopped denies whatever an organization's agents ask while it is stopped.
	CodeOrganizationStopped Code = "organization.stopped"

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

	// The codes of objections that come from the intent's session: see [Session].
	CodeSessionClosed     Code = "session.closed"
	CodeSessionExpired    Code = "session.expired"
	CodeSessionNotAllowed Code = "session.not_allowed"

	// CodeBatchRefused denies an intent that would be allowed alone, because another intent of its
	// batch is not allowed: see package decision.
	CodeBatchRefused Code = "batch.refused"

	// CodeApprovalGranted allows an intent because all its findings were approved.
	// CodeApprovalOutOfScope sends the intent to approval again, because some of its findings were
	// not approved. The other codes deny an intent whose approval was not given or is no longer
	// valid. See package approval.
	CodeApprovalGranted    Code = "approval.granted"
	CodeApprovalOutOfScope Code = "approval.out_of_scope"
	CodeApprovalRejected   Code = "approval.rejected"
	CodeApprovalExpired    Code = "approval.expired"
	CodeApprovalRevoked    Code = "approval.revoked"

	// CodePolicyAllowed says that the intent is allowed: no check objected and no rule matched.
	CodePolicyAllowed Code = "policy.allowed"

	// These codes deny. Either there is no policy or no intent to evaluate, or the stored policy no
	// longer compiles, or the resource has no single meaning, or a check could not be evaluated.
	CodePolicyMissing      Code = "policy.missing"
	CodePolicyUnreadable   Code = "policy.unreadable"
	CodeResourceUnreadable Code = "resource.unreadable"
	CodeCheckError         Code = "check.error"

	// CodeCoreFinding stands for all codes of an external core. The reason of such a finding
	// starts with the core's code.
	CodeCoreFinding Code = "core.finding"
)

// Codes returns all codes, in check order.
func Codes() []Code {
	return []Code{
		CodePolicyMissing, CodePolicyUnreadable, CodeOrganizationStopped, CodePolicyInactive,
		CodeAgentDisabled, CodeAgentUnregistered, CodeAgentMismatch,
		CodeActionDenied, CodeActionNotAllowed, CodeResourceUnreadable, CodeResourceBlocked, CodeResourceNotAllowed,
		CodeCostExceeded, CodeCostCurrency, CodeUsageLimit,
		CodeSessionClosed, CodeSessionExpired, CodeSessionNotAllowed, CodeCheckError,
		CodeRuleDeny, CodeRuleApprovalRequired, CodeRuleAllow, CodeBatchRefused, CodeCoreFinding,
		CodeApprovalRejected, CodeApprovalExpired, CodeApprovalRevoked, CodeApprovalOutOfScope, CodeApprovalGranted,
		CodePolicyAllowed,
	}
}

// Outcome returns the outcome of a finding with code c. It returns false if c is [CodeCoreFinding],
// which comes with any outcome, or if c is not a code of writ.
func (c Code) Outcome() (Decision, bool) {
	switch c {
	case CodePolicyAllowed, CodeRuleAllow, CodeApprovalGranted:
		return Allow, true
	case CodeAgentMismatch, CodeRuleApprovalRequired, CodeApprovalOutOfScope:
		return ApprovalRequired, true
	}
	return Deny, c != CodeCoreFinding && slices.Contains(Codes(), c)
}
