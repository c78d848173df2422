package engine

import (
	"fmt"
	"strings"
)

// Check is one row of the table that an [ActionPolicy] is evaluated by.
//
// CEL and Rego are two renderings of the same condition: the check HOLDS. A
// condition that is false, undefined or an error is a check that fails, and one
// that fails contributes a finding with Code and Outcome.
type Check struct {
	Code    Code
	Outcome Decision
	// Reason starts with the code and says what is wrong. Where a pattern or an
	// action type objected, the engine's finding names that one besides.
	Reason string
	// CEL is an expression over the variables intent.*, agent.*, policy.*,
	// usage.exceeded, deployment.require_registered_agents, readings.blocked and
	// readings.allowed.
	CEL string
	// Rego is one expression of Rego v1 over input = {intent, agent: {status},
	// usage: {exceeded}, require_registered_agents} and over blocked_readings and
	// allowed_readings, which [RegoReadings] defines. Negated, it is the body of
	// the rule that reports the finding. An agent's status is written as
	// [AgentStatus.String] writes it.
	Rego string
	// RegoDefs are the definitions that Rego relies on, complete rules for the
	// top level of a module, separated by empty lines. It may be empty. No two
	// checks define the same name.
	RegoDefs string

	// patterns is the list that objected where the check fails by a match;
	// named is the reason then, with %s for the pattern.
	patterns []string
	named    string
	// resource marks a check that cannot be answered without readings.
	resource bool
}

// RegoReadings defines the readings of the resource that the checks are tried
// on. A caller that cannot compute them, such as a plain OPA, has the resource
// as it was written alone: spellings of it then pass where writ refuses them.
const RegoReadings = `blocked_readings := object.get(input, ["readings", "blocked"], [input.intent.resource])

allowed_readings := object.get(input, ["readings", "allowed"], [input.intent.resource])`

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
	checks := []Check{policyActive(p), agentEnabled(), agentRegistered(), agentMatches(p)}
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

func policyActive(p *ActionPolicy) Check {
	status := p.Status
	if status == "" {
		status = "without status"
	}
	c := deny(CodePolicyInactive, "version %d of the policy is %s", p.Version, status)
	c.CEL = `policy.status == "active"`
	c.Rego = `policy_status == "active"`
	c.RegoDefs = "policy_status := " + quote(string(p.Status))
	return c
}

func agentEnabled() Check {
	c := deny(CodeAgentDisabled, "the agent is disabled")
	c.CEL = `agent.status in ["active", "unregistered"]`
	c.Rego = `input.agent.status in {"active", "unregistered"}`
	return c
}

func agentRegistered() Check {
	c := deny(CodeAgentUnregistered, "the agent is not registered")
	c.CEL = `!deployment.require_registered_agents || agent.status != "unregistered"`
	c.Rego = `agent_may_act`
	c.RegoDefs = "agent_may_act if input.require_registered_agents == false\n\n" +
		`agent_may_act if input.agent.status != "unregistered"`
	return c
}

func agentMatches(p *ActionPolicy) Check {
	c := Check{
		Code: CodeAgentMismatch, Outcome: ApprovalRequired,
		Reason: fmt.Sprintf("%s: version %d of the policy governs the agent %s, another one needs approval",
			CodeAgentMismatch, p.Version, quote(p.AgentID)),
	}
	id := quote(p.AgentID)
	if !hasMeta(p.AgentID) {
		c.CEL = "intent.agent_id == " + id
		c.Rego = "input.intent.agent_id == " + id
		return c
	}
	c.CEL = fmt.Sprintf("intent.agent_id == %s || glob(%s, intent.agent_id)", id, id)
	c.Rego = "agent_matches"
	c.RegoDefs = regoPattern("agent_pattern", []string{p.AgentID}, plainExpressions) + "\n\n" +
		"agent_matches if input.intent.agent_id == " + id + "\n\n" +
		"agent_matches if regex.match(agent_pattern, input.intent.agent_id)"
	return c
}

// hasMeta reports whether s means something else as a glob than as itself.
func hasMeta(s string) bool { return strings.ContainsAny(s, `*?[]{}\`) }

func actionNotDenied(p *ActionPolicy) Check {
	c := deny(CodeActionDenied, "the action type matches a denied type")
	c.patterns = p.DeniedActionTypes
	c.named = string(CodeActionDenied) + ": the action type matches the denied type %s"
	c.CEL = "!" + celActions(p.DeniedActionTypes)
	c.Rego = "not action_denied"
	c.RegoDefs = regoActions("action_denied", "denied_action", p.DeniedActionTypes)
	return c
}

func actionAllowed(p *ActionPolicy) Check {
	c := deny(CodeActionNotAllowed, "the action type matches no allowed type")
	c.CEL = celActions(p.AllowedActionTypes)
	c.Rego = "action_allowed"
	c.RegoDefs = regoActions("action_allowed", "allowed_action", p.AllowedActionTypes)
	return c
}

func resourceNotBlocked(p *ActionPolicy) Check {
	c := deny(CodeResourceBlocked, "the resource matches a blocked pattern")
	c.patterns = p.BlockedResourcePatterns
	c.named = string(CodeResourceBlocked) + ": the resource matches the blocked pattern %s"
	c.resource = true
	c.CEL = fmt.Sprintf("!resource_any(%s, readings.blocked)", celList(p.BlockedResourcePatterns))
	c.Rego = "not resource_blocked"
	c.RegoDefs = regoPattern("blocked_pattern", p.BlockedResourcePatterns, resourceExpressions) + `

resource_blocked if {
	some reading in blocked_readings
	regex.match(blocked_pattern, reading)
}`
	return c
}

func resourceAllowed(p *ActionPolicy) Check {
	c := deny(CodeResourceNotAllowed, "the resource matches no allowed pattern")
	c.resource = true
	c.CEL = fmt.Sprintf("resource_every(%s, readings.allowed)", celList(p.AllowedResourcePatterns))
	c.Rego = "resource_allowed"
	c.RegoDefs = regoPattern("allowed_pattern", p.AllowedResourcePatterns, resourceExpressions) + `

resource_allowed if {
	count(allowed_readings) > 0
	every reading in allowed_readings {
		regex.match(allowed_pattern, reading)
	}
}`
	return c
}

func costWithinCap(p *ActionPolicy) Check {
	limit := *p.MaxCostMinor
	c := deny(CodeCostExceeded, "the cost is above the cap of %d minor units", limit)
	c.CEL = fmt.Sprintf("!has(intent.cost) || intent.cost.amount_minor <= %d", limit)
	c.Rego = "cost_within_cap"
	c.RegoDefs = fmt.Sprintf("cost_within_cap if not input.intent.cost\n\n"+
		"cost_within_cap if input.intent.cost.amount_minor <= %d", limit)
	return c
}

func costInCurrency(p *ActionPolicy) Check {
	c := deny(CodeCostCurrency, "the cost is not in %s", p.Currency)
	c.CEL = "!has(intent.cost) || intent.cost.currency == " + quote(p.Currency)
	c.Rego = "cost_in_currency"
	c.RegoDefs = "cost_in_currency if not input.intent.cost\n\n" +
		"cost_in_currency if input.intent.cost.currency == " + quote(p.Currency)
	return c
}

func usageWithinLimit() Check {
	c := deny(CodeUsageLimit, "the usage limit of the organization's plan is reached")
	c.CEL = "!usage.exceeded"
	c.Rego = "input.usage.exceeded == false"
	return c
}
