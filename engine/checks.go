package engine

import (
	"fmt"
	"strings"

	"writ/engine/glob"
)

// Check is one row of the table that an [ActionPolicy] is evaluated by.
//
// CEL and Rego are two renderings of it. A check whose condition in CEL is false
// or an error fails, and one that fails contributes a finding with Code and
// Outcome.
type Check struct {
	Code    Code
	Outcome Decision
	// Reason starts with the code and says what is wrong. Where a pattern or an
	// action type objected, the engine's finding names that one besides.
	Reason string
	// CEL is an expression over the variables intent.*, agent.*, policy.*,
	// usage.exceeded and deployment.require_registered_agents, and over the
	// readings of the resource: see [resourceNode].
	CEL string
	// Rego are complete rules of Rego v1, separated by empty lines, which add Code
	// to the set findings where the check fails, over input = {intent, agent:
	// {status}, usage: {exceeded}, require_registered_agents} and over what
	// [RegoReadings] defines. What is
	// missing from the input fails the check. It is empty where the check cannot
	// fail. No two checks define the same name besides findings.
	//
	// A negated comparison other than `==` is undefined in Rego, not true, where
	// its operand is: it stands in a rule of its own.
	Rego string

	// patterns is the list that objected where the check fails by a match;
	// named is the reason then, with %s for the pattern.
	patterns []string
	named    string
	// resource marks a check that cannot be answered without readings.
	resource bool
	// rego writes Rego where that takes long and a compiled policy, which runs
	// CEL alone, should not wait for it.
	rego func() string
}

// RegoReadings defines the readings of the resource that the checks are tried on.
// A caller that cannot compute them, such as a plain OPA, is denied.
const RegoReadings = `findings contains "resource.unreadable" if not resource_read

# What writ makes of the resource: see "writ rego --help" for how to have it.
resource_read if {
	count(blocked_readings) > 0
	count(allowed_readings) > 0
	every reading in array.concat(blocked_readings, allowed_readings) {
		is_string(reading.text)
		count(reading.readers) > 0
	}
	input.readings.stops in {"", "list", "address"}
}

blocked_readings := input.readings.blocked

allowed_readings := input.readings.allowed`

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
	checks := table(p)
	for i := range checks {
		if lazy := checks[i].rego; lazy != nil {
			checks[i].Rego = lazy()
		}
	}
	return checks
}

// table is [Checks] without the renderings that take long to write.
func table(p *ActionPolicy) []Check {
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

func policyActive(p *ActionPolicy) Check {
	status := p.Status
	if status == "" {
		status = "without status"
	}
	c := deny(CodePolicyInactive, "version %d of the policy is %s", p.Version, status)
	c.CEL = `policy.status == "active"`
	if p.Status != StatusActive {
		c.Rego = "findings contains " + Quote(string(c.Code))
	}
	return c
}

func agentEnabled() Check {
	c := deny(CodeAgentDisabled, "the agent is disabled")
	c.CEL = `agent.status in ["active", "unregistered"]`
	c.Rego = regoFinding(c.Code, `not input.agent.status == "active"`, `not input.agent.status == "unregistered"`)
	return c
}

func agentRegistered() Check {
	c := deny(CodeAgentUnregistered, "the agent is not registered")
	c.CEL = `!deployment.require_registered_agents || agent.status != "unregistered"`
	c.Rego = regoFinding(c.Code, `not input.require_registered_agents == false`,
		`not input.agent.status == "active"`, `not input.agent.status == "disabled"`)
	return c
}

// anyAgent alone governs every agent, whatever segments its id has, as "*" alone
// matches every action type. In a longer pattern it matches within a segment.
const anyAgent = "*"

func agentMatches(p *ActionPolicy) Check {
	c := Check{
		Code: CodeAgentMismatch, Outcome: ApprovalRequired,
		Reason: fmt.Sprintf("%s: version %d of the policy governs the agent %s, another one needs approval",
			CodeAgentMismatch, p.Version, Quote(p.AgentID)),
	}
	id := Quote(p.AgentID)
	if !hasMeta(p.AgentID) {
		c.CEL = "intent.agent_id == " + id
		c.Rego = regoFinding(c.Code, "not input.intent.agent_id == "+id)
		return c
	}
	c.CEL = fmt.Sprintf("intent.agent_id == %s || glob(%s, intent.agent_id)", id, id)
	c.Rego = regoFinding(c.Code, "not agent_matches") + "\n\n" +
		regoPatterns(p.AgentID) +
		"agent_matches if regex.match(" + regoUnion([]string{p.AgentID}, agentExpressions) + ", input.intent.agent_id)"
	return c
}

// hasMeta reports whether s means something else as a glob than as itself.
func hasMeta(s string) bool { return strings.ContainsAny(s, `*?[]{}\`) }

func actionNotDenied(p *ActionPolicy) Check {
	c := deny(CodeActionDenied, "the action type matches a denied type")
	c.patterns = p.DeniedActionTypes
	c.named = string(CodeActionDenied) + ": the action type matches the denied type %s"
	c.CEL = fmt.Sprintf("!action_denied(%s, intent.action_type)", celList(p.DeniedActionTypes))
	c.Rego = regoDenied("findings contains "+Quote(string(c.Code)), p.DeniedActionTypes)
	return c
}

func actionAllowed(p *ActionPolicy) Check {
	c := deny(CodeActionNotAllowed, "the action type matches no allowed type")
	c.CEL = celActions(p.AllowedActionTypes)
	if len(p.AllowedActionTypes) == 0 {
		c.Rego = "findings contains " + Quote(string(c.Code))
		return c
	}
	c.Rego = regoFinding(c.Code, "not action_allowed") + "\n\n" + regoActions("action_allowed", p.AllowedActionTypes)
	return c
}

func resourceNotBlocked(p *ActionPolicy) Check {
	c := deny(CodeResourceBlocked, "the resource matches a blocked pattern")
	c.patterns = p.BlockedResourcePatterns
	c.named = string(CodeResourceBlocked) + ": the resource matches the blocked pattern %s"
	c.resource = true
	c.CEL = fmt.Sprintf("!resource_any(%s, %s)", Quote(fnResourceGlob), celList(p.BlockedResourcePatterns))
	c.rego = func() string {
		return regoPatterns(p.BlockedResourcePatterns...) +
			regoFinding(c.Code, "resource_blocked") + "\n\n" +
			regoAny("resource_blocked", glob.Expressions(p.BlockedResourcePatterns, glob.Blocks))
	}
	return c
}

func resourceAllowed(p *ActionPolicy) Check {
	c := deny(CodeResourceNotAllowed, "the resource matches no allowed pattern")
	c.resource = true
	c.CEL = fmt.Sprintf("resource_every(%s, %s)", Quote(fnResourceGlob), celList(p.AllowedResourcePatterns))
	c.rego = func() string {
		return regoFinding(c.Code, "not resource_allowed") + "\n\n" +
			regoPatterns(p.AllowedResourcePatterns...) +
			regoEvery("resource_allowed", glob.Expressions(p.AllowedResourcePatterns, glob.Allows))
	}
	return c
}

func costWithinCap(p *ActionPolicy) Check {
	limit := *p.MaxCostMinor
	c := deny(CodeCostExceeded, "the cost is above the cap of %d minor units", limit)
	c.CEL = fmt.Sprintf("!has(intent.cost) || intent.cost.amount_minor <= %d", limit)
	c.Rego = regoFinding(c.Code, fmt.Sprintf("input.intent.cost.amount_minor > %d", limit)) + "\n\n" +
		regoFinding(c.Code, "input.intent.cost", "not input.intent.cost.amount_minor")
	return c
}

func costInCurrency(p *ActionPolicy) Check {
	c := deny(CodeCostCurrency, "the cost is not in %s", p.Currency)
	c.CEL = "!has(intent.cost) || intent.cost.currency == " + Quote(p.Currency)
	c.Rego = regoFinding(c.Code, "input.intent.cost", "not input.intent.cost.currency == "+Quote(p.Currency))
	return c
}

func usageWithinLimit() Check {
	c := deny(CodeUsageLimit, "the usage limit of the organization's plan is reached")
	c.CEL = "!usage.exceeded"
	c.Rego = regoFinding(c.Code, "not input.usage.exceeded == false")
	return c
}
