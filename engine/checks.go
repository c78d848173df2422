package engine

import (
	"fmt"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// The members of a policy that checks read, as [FieldError] names them.
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

// Check is one check of an [ActionPolicy]. The check fails if Holds is false or an error. A failed
// check adds a finding with Code and Outcome. Package rego finds its rendering of a check by Code.
type Check struct {
	Code    Code
	Outcome Decision
	// Reason starts with the code and names the failure. If a pattern or an action type made the
	// check fail, the engine's finding also names the pattern or type.
	Reason string
	// Holds is the check as a condition on the fields of an evaluation. It is only for display.
	Holds *condition.Node

	row *checkRow
}

// checkRow is a row of [checkTable]. It describes a [Check] for every policy.
type checkRow struct {
	code    Code
	outcome Decision
	// set reports whether p has the check. If set is nil, every policy has the check.
	set func(p *ActionPolicy) bool
	// reason is the same for every policy. If reasonOf is set, it is used instead.
	reason   string
	reasonOf func(p *ActionPolicy) string
	// holds evaluates the check. tree returns the same check as a condition.
	holds func(s *scope, e evaluation) bool
	tree  func(p *ActionPolicy) *condition.Node
	// field is the policy's member that the check reads, as [FieldError] names it. It is empty if
	// the check reads no member. If the member is a list of patterns, entries returns the list, and
	// actions or patterns returns the compiled list. named is the reason if a pattern made the
	// check fail. The %s in named stands for that pattern.
	field    string
	entries  func(p *ActionPolicy) []string
	actions  func(s *scope) *glob.Actions
	patterns func(s *scope) *glob.List
	named    string
}

// checkTable has the checks that a policy can have, in the order of their findings.
var checkTable = [...]checkRow{
	{
		code: CodeOrganizationStopped, outcome: Deny,
		reason: string(CodeOrganizationStopped) + ": the organization is stopped",
		holds:  func(_ *scope, e evaluation) bool { return !e.in.Stopped },
		tree:   func(*ActionPolicy) *condition.Node { return condition.Negate(isSet(condition.OrganizationStopped)) },
	},
	{
		code: CodePolicyInactive, outcome: Deny, field: fieldStatus, reasonOf: inactive,
		holds: func(_ *scope, e evaluation) bool { return e.policy.Status == StatusActive },
		tree: func(*ActionPolicy) *condition.Node {
			return asks(condition.PolicyStatus, condition.Eq, string(StatusActive))
		},
	},
	{
		code: CodeAgentDisabled, outcome: Deny, reason: string(CodeAgentDisabled) + ": the agent is disabled",
		holds: func(_ *scope, e evaluation) bool { return e.in.Agent == AgentActive || isUnregistered(e) },
		tree: func(*ActionPolicy) *condition.Node {
			return asks(condition.GovernedAgentStatus, condition.In, AgentActive.String(), AgentUnregistered.String())
		},
	},
	{
		code: CodeAgentUnregistered, outcome: Deny, reason: string(CodeAgentUnregistered) +
			": the agent is not registered",
		holds: func(_ *scope, e evaluation) bool { return !e.in.RequireRegistered || !isUnregistered(e) },
		tree:  agentRegistered,
	},
	{
		code: CodeAgentMismatch, outcome: ApprovalRequired, field: fieldAgentID, reasonOf: mismatch, tree: agentMatches,
		set:   func(p *ActionPolicy) bool { return p.AgentID != anyAgent },
		holds: func(s *scope, e evaluation) bool { return s.agent.Matches(e.in.Intent.AgentID) },
	},
	{
		code: CodeActionDenied, outcome: Deny, field: fieldDeniedTypes,
		reason:  string(CodeActionDenied) + ": the action type matches a denied type",
		named:   string(CodeActionDenied) + ": the action type matches the denied type %s",
		entries: func(p *ActionPolicy) []string { return p.DeniedActionTypes },
		actions: func(s *scope) *glob.Actions { return &s.denied },
		set:     func(p *ActionPolicy) bool { return len(p.DeniedActionTypes) > 0 },
		holds:   func(s *scope, e evaluation) bool { return s.denied.Match(e.in.Intent.ActionType) < 0 },
		tree: func(p *ActionPolicy) *condition.Node {
			return condition.Negate(asks(condition.ActionType, condition.ActionDenied, p.DeniedActionTypes...))
		},
	},
	{
		code: CodeActionNotAllowed, outcome: Deny, field: fieldAllowedTypes,
		reason:  string(CodeActionNotAllowed) + ": the action type matches no allowed type",
		entries: func(p *ActionPolicy) []string { return p.AllowedActionTypes },
		actions: func(s *scope) *glob.Actions { return &s.allowed },
		holds:   typeAllowed,
		tree: func(p *ActionPolicy) *condition.Node {
			return asks(condition.ActionType, condition.ActionGlob, p.AllowedActionTypes...)
		},
	},
	{
		code: CodeResourceBlocked, outcome: Deny, field: fieldBlockedPatterns,
		reason:   string(CodeResourceBlocked) + ": the resource matches a blocked pattern",
		named:    string(CodeResourceBlocked) + ": the resource matches the blocked pattern %s",
		entries:  func(p *ActionPolicy) []string { return p.BlockedResourcePatterns },
		patterns: func(s *scope) *glob.List { return &s.blocked },
		set:      func(p *ActionPolicy) bool { return len(p.BlockedResourcePatterns) > 0 },
		holds:    func(s *scope, e evaluation) bool { return !s.blocked.Holds(e.Readings()) },
		tree: func(p *ActionPolicy) *condition.Node {
			return condition.Negate(reads(resource.ForBlock, p.BlockedResourcePatterns))
		},
	},
	{
		code: CodeResourceNotAllowed, outcome: Deny, field: fieldAllowedPatterns,
		reason:   string(CodeResourceNotAllowed) + ": the resource matches no allowed pattern",
		entries:  func(p *ActionPolicy) []string { return p.AllowedResourcePatterns },
		patterns: func(s *scope) *glob.List { return &s.permitted },
		set:      func(p *ActionPolicy) bool { return len(p.AllowedResourcePatterns) > 0 },
		holds:    resourceAllowed,
		tree: func(p *ActionPolicy) *condition.Node {
			return reads(resource.ForAllow, p.AllowedResourcePatterns)
		},
	},
	{
		code: CodeCostExceeded, outcome: Deny, field: fieldMaxCost, holds: costAllowed, tree: costWithinCap,
		set: func(p *ActionPolicy) bool { return p.MaxCostMinor != nil },
		reasonOf: func(p *ActionPolicy) string {
			return fmt.Sprintf("%s: the cost is above the cap of %d minor units", CodeCostExceeded, *p.MaxCostMinor)
		},
	},
	{
		code: CodeCostCurrency, outcome: Deny, field: fieldCurrency,
		set: func(p *ActionPolicy) bool { return p.Currency != "" },
		reasonOf: func(p *ActionPolicy) string {
			return fmt.Sprintf("%s: the cost is not in %s", CodeCostCurrency, p.Currency)
		},
		holds: func(_ *scope, e evaluation) bool {
			return e.in.Intent.Cost == nil || e.in.Intent.Cost.Currency == e.policy.Currency
		},
		tree: func(p *ActionPolicy) *condition.Node {
			return ofCost(asks(condition.CostCurrency, condition.Eq, p.Currency))
		},
	},
	{
		code: CodeUsageLimit, outcome: Deny,
		reason: string(CodeUsageLimit) + ": the usage limit of the organization's plan is reached",
		holds:  func(_ *scope, e evaluation) bool { return !e.in.Usage.Exceeded },
		tree:   func(*ActionPolicy) *condition.Node { return condition.Negate(isSet(condition.UsageExceeded)) },
	},
}

func isUnregistered(e evaluation) bool { return e.in.Agent.String() == AgentUnregistered.String() }

// finding returns the finding of a check that fails. It names no pattern.
func (r *checkRow) finding(p *ActionPolicy) Finding {
	f := Finding{Code: r.code, Outcome: r.outcome, Reason: r.reason, Field: r.field}
	if r.reasonOf != nil {
		f.Reason = r.reasonOf(p)
	}
	return f
}

// Checks returns the checks of a policy, in the order of their findings. Checks omits a check
// without anything to compare, for example if the policy has no cap or an empty block list.
//
//	organization.stopped  deny               the organization is stopped
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
	var checks []Check
	for i := range checkTable {
		if r := &checkTable[i]; r.set == nil || r.set(p) {
			checks = append(checks,
				Check{Code: r.code, Outcome: r.outcome, Reason: r.finding(p).Reason, Holds: r.tree(p), row: r})
		}
	}
	return checks
}

// asks returns the condition that compares the field id with texts by op.
func asks(id condition.FieldID, op condition.Operator, texts ...string) *condition.Node {
	return condition.Compare(condition.FieldOf(id), op, condition.Texts(texts...)...)
}

func isSet(id condition.FieldID) *condition.Node {
	return condition.Compare(condition.FieldOf(id), condition.IsTrue)
}

// reads returns the condition that compares the resource with patterns. side says whether the
// patterns block or allow.
func reads(side resource.Side, patterns []string) *condition.Node {
	n := asks(condition.Resource, condition.ResourceGlob, patterns...)
	n.Side = side
	return n
}

func inactive(p *ActionPolicy) string {
	status := p.Status
	if status == "" {
		status = "without status"
	}
	return fmt.Sprintf("%s: version %d of the policy is %s", CodePolicyInactive, p.Version, status)
}

func agentRegistered(*ActionPolicy) *condition.Node {
	return condition.Either(
		condition.Negate(isSet(condition.RequireRegistered)),
		condition.Negate(asks(condition.GovernedAgentStatus, condition.Eq, AgentUnregistered.String())))
}

// anyAgent is the pattern for every agent, also for ids with several segments. In a longer pattern
// a "*" matches only within a segment.
const anyAgent = "*"

func mismatch(p *ActionPolicy) string {
	return fmt.Sprintf("%s: version %d of the policy governs the agent %s, another one needs approval",
		CodeAgentMismatch, p.Version, condition.Quote(p.AgentID))
}

func agentMatches(p *ActionPolicy) *condition.Node {
	id := asks(condition.AgentID, condition.Eq, p.AgentID)
	if glob.HasMeta(p.AgentID) {
		return condition.Either(id, asks(condition.AgentID, condition.Glob, p.AgentID))
	}
	return id
}

// ofCost returns a condition that is true if the intent has no cost or if the condition holds is
// true.
func ofCost(holds *condition.Node) *condition.Node {
	return condition.Either(condition.Negate(condition.Has(condition.FieldOf(condition.Cost))), holds)
}

func costWithinCap(p *ActionPolicy) *condition.Node {
	return ofCost(condition.Compare(condition.FieldOf(condition.CostAmount), condition.Lte,
		condition.Constant{Num: *p.MaxCostMinor}))
}
