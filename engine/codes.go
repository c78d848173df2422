package engine

// The codes of findings, in check order. Only [CodePolicyAllowed] and
// [CodeRuleAllow] come with an allow.
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

	// CodePolicyAllowed is the finding of an intent that nothing objected to
	// and no rule matched.
	CodePolicyAllowed Code = "policy.allowed"

	// CodePolicyMissing denies where there is no policy or no intent to
	// evaluate, CodeResourceUnreadable where the resource has no single
	// meaning, CodeCheckError where a check could not be evaluated.
	CodePolicyMissing      Code = "policy.missing"
	CodeResourceUnreadable Code = "resource.unreadable"
	CodeCheckError         Code = "check.error"
)

// Codes returns every code there is, in check order.
func Codes() []Code {
	return []Code{
		CodePolicyMissing, CodePolicyInactive, CodeAgentDisabled, CodeAgentUnregistered, CodeAgentMismatch,
		CodeActionDenied, CodeActionNotAllowed, CodeResourceUnreadable, CodeResourceBlocked, CodeResourceNotAllowed,
		CodeCostExceeded, CodeCostCurrency, CodeUsageLimit, CodeCheckError,
		CodeRuleDeny, CodeRuleApprovalRequired, CodeRuleAllow, CodePolicyAllowed,
	}
}
