package engine

import (
	"fmt"

	"writ/engine/condition"
	"writ/engine/glob"
)

// The members of a policy that checks are of, as [FieldError] names them.
const (
	fieldStatus          = "policy.status"
	fieldAgentID         = "policy.agent_id"
	fieldDeniedTypes     = "policy.denied_action_types"
	fieldAllowedTypes    = "policy.allowed_action_types"
	fieldBlockedPatterns = "policy.blocked_resource_patterns"
	fieldAllowedPatterns = "policy.allowed_resource_patterns"
	fieldMaxCost         = "policy.max_cost_minor"
	fieldCurrency        = "policy.currency"
)

// Check is one row of the table that an [ActionPolicy] is evaluated by. A check of
// which Holds is false or an error fails, and one that fails contributes a finding with
// Code and Outcome. Package rego writes each check as Rego by its code.
type Check struct {
	Code    Code
	Outcome Decision
	// Reason starts with the code and says what is wrong. Where a pattern or an
	// action type objected, the engine's finding names that one besides.
	Reason string
	// Holds is what the check asks of the fields of an evaluation.
	Holds *condition.Node

	// field is the policy's member that the check is of, as [FieldError] names it; empty
	// where the check is not of one. patterns is that member where it is a list of
	// patterns. Where a match of one makes the check fail, named is the reason then,
	// with %s for the pattern.
	field    string
	patterns []string
	named    string
	// resource marks a check that cannot be answered without readings.
	resource bool
}

// Checks returns the checks of a policy, in the order in which their findings
// are reported. A check that p gives no reason for (no cap, an empty block
// list) is left out.
//
//	policy.inactive       deny               the policy's status is not active
//	agent.disabled        deny               the kill switch of the agent
//	agent.unregistered    deny               where the deployment requires registration
//	agent.mismatch        approval_required  the policy governs another agent
//	action.denied         deny               a denied type matches
//	action.not_allowed    deny               no allowed type matches
//	resource.blocked      deny               a blocked pattern matches any reading
//	resource.not_allowed  deny               a normalised reading matches no allowed pattern
//	cost.exceeded         deny               the cost is above the cap
//	cost.currency         deny               the cost is in another currency
//	usage.limit           deny               the organization's meter is used up
func Checks(p *ActionPolicy) []Check {
	checks := []Check{policyActive(p), agentEnabled(), agentRegistered()}
	if p.AgentID != anyAgent {
		checks = append(checks, agentMatches(p))
	}
	if len(p.DeniedActionTypes) > 0 {
		checks = append(checks, actionNotDenied(p))
	}
	checks = append(checks, actionAllowed(p))
	if len(p.BlockedResourcePatterns) > 0 {
		checks = append(checks, resourceNotBlocked(p))
	}
	if len(p.AllowedResourcePatterns) > 0 {
		checks = append(checks, resourceAllowed(p))
	}
	if p.MaxCostMinor != nil {
		checks = append(checks, costWithinCap(p))
	}
	if p.Currency != "" {
		checks = append(checks, costInCurrency(p))
	}
	return append(checks, usageWithinLimit())
}

// deny returns a denying check without renderings.
func deny(code Code, format string, args ...any) Check {
	return Check{Code: code, Outcome: Deny, Reason: string(code) + ": " + fmt.Sprintf(format, args...)}
}

// asks returns the comparison of a field with texts.
func asks(id condition.FieldID, op condition.Operator, texts ...string) *condition.Node {
	return condition.Compare(condition.FieldOf(id), op, condition.Texts(texts...)...)
}

// isSet returns the test of a boolean field.
func isSet(id condition.FieldID) *condition.Node {
	return condition.Compare(condition.FieldOf(id), condition.IsTrue)
}

func policyActive(p *ActionPolicy) Check {
	status := p.Status
	if status == "" {
		status = "without status"
	}
	c := deny(CodePolicyInactive, "version %d of the policy is %s", p.Version, status)
	c.field = fieldStatus
	c.Holds = asks(condition.PolicyStatus, condition.Eq, string(StatusActive))
	return c
}

func agentEnabled() Check {
	c := deny(CodeAgentDisabled, "the agent is disabled")
	c.Holds = asks(condition.GovernedAgentStatus, condition.In, AgentActive.String(), AgentUnregistered.String())
	return c
}

func agentRegistered() Check {
	c := deny(CodeAgentUnregistered, "the agent is not registered")
	c.Holds = condition.Either(
		condition.Negate(isSet(condition.RequireRegistered)),
		condition.Negate(asks(condition.GovernedAgentStatus, condition.Eq, AgentUnregistered.String())))
	return c
}

// anyAgent alone governs every agent, whatever segments its id has, as "*" alone
// matches every action type. In a longer pattern it matches within a segment.
const anyAgent = "*"

func agentMatches(p *ActionPolicy) Check {
	c := Check{
		Code: CodeAgentMismatch, Outcome: ApprovalRequired, field: fieldAgentID,
		Reason: fmt.Sprintf("%s: version %d of the policy governs the agent %s, another one needs approval",
			CodeAgentMismatch, p.Version, condition.Quote(p.AgentID)),
	}
	c.Holds = asks(condition.AgentID, condition.Eq, p.AgentID)
	if glob.HasMeta(p.AgentID) {
		c.Holds = condition.Either(c.Holds, asks(condition.AgentID, condition.Glob, p.AgentID))
	}
	return c
}

func actionNotDenied(p *ActionPolicy) Check {
	c := deny(CodeActionDenied, "the action type matches a denied type")
	c.field, c.patterns = fieldDeniedTypes, p.DeniedActionTypes
	c.named = string(CodeActionDenied) + ": the action type matches the denied type %s"
	c.Holds = condition.Negate(asks(condition.ActionType, condition.ActionDenied, p.DeniedActionTypes...))
	return c
}

func actionAllowed(p *ActionPolicy) Check {
	c := deny(CodeActionNotAllowed, "the action type matches no allowed type")
	c.field, c.patterns = fieldAllowedTypes, p.AllowedActionTypes
	c.Holds = asks(condition.ActionType, condition.ActionGlob, p.AllowedActionTypes...)
	return c
}

func resourceNotBlocked(p *ActionPolicy) Check {
	c := deny(CodeResourceBlocked, "the resource matches a blocked pattern")
	c.field, c.patterns = fieldBlockedPatterns, p.BlockedResourcePatterns
	c.named = string(CodeResourceBlocked) + ": the resource matches the blocked pattern %s"
	c.resource = true
	blocked := asks(condition.Resource, condition.ResourceGlob, p.BlockedResourcePatterns...)
	blocked.Reads = condition.ReadsAny
	c.Holds = condition.Negate(blocked)
	return c
}

func resourceAllowed(p *ActionPolicy) Check {
	c := deny(CodeResourceNotAllowed, "the resource matches no allowed pattern")
	c.field, c.patterns = fieldAllowedPatterns, p.AllowedResourcePatterns
	c.resource = true
	c.Holds = asks(condition.Resource, condition.ResourceGlob, p.AllowedResourcePatterns...)
	c.Holds.Reads = condition.ReadsEvery
	return c
}

// ofCost returns what holds where there is no cost, or holds of it.
func ofCost(holds *condition.Node) *condition.Node {
	return condition.Either(condition.Negate(condition.Has(condition.FieldOf(condition.Cost))), holds)
}

func costWithinCap(p *ActionPolicy) Check {
	limit := *p.MaxCostMinor
	c := deny(CodeCostExceeded, "the cost is above the cap of %d minor units", limit)
	c.field = fieldMaxCost
	c.Holds = ofCost(condition.Compare(condition.FieldOf(condition.CostAmount), condition.Lte, condition.Constant{Num: limit}))
	return c
}

func costInCurrency(p *ActionPolicy) Check {
	c := deny(CodeCostCurrency, "the cost is not in %s", p.Currency)
	c.field = fieldCurrency
	c.Holds = ofCost(asks(condition.CostCurrency, condition.Eq, p.Currency))
	return c
}

func usageWithinLimit() Check {
	c := deny(CodeUsageLimit, "the usage limit of the organization's plan is reached")
	c.Holds = condition.Negate(isSet(condition.UsageExceeded))
	return c
}
