package engine

import (
	"fmt"
	"slices"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// Input has all inputs of an evaluation except the policy and the rules.
type Input struct {
	// Intent is the intent to decide. It has passed [Intent.Validate].
	Intent *Intent
	// Names are the names of the intent's agent. The zero value means that the agent has no other
	// name than the one in the intent: see [Input.AgentNames].
	Names AgentNames
	// DecidedAt is the time of the decision: the time of its row, in UTC and in whole
	// milliseconds. It is the clock of conditions. If it is zero, every condition that reads it is
	// an error.
	DecidedAt time.Time
	// Stopped says that the organization is stopped, so that nothing is allowed.
	Stopped bool
	// Agent is the state of the kill switch for the intent's agent.
	Agent AgentStatus
	// RequireRegistered denies agents that the organization has not registered.
	RequireRegistered bool
	Usage             Usage
	// Counts has the values of all [RuleSet.Counters]. If a value is missing, every condition that
	// reads it is an error.
	Counts []condition.Count
	// Approval is the approval under which the intent is decided, or nil. No check reads it, but
	// an external core may.
	Approval *Approval
	// Session is the session in which the intent is proposed.
	Session InSession
	// Keep says what the row of the decision keeps of the intent: the messages of rules hold nothing
	// else. If it is nil, the decision is not stored, and messages hold the intent as it is.
	Keep Keeper
	// Turn lets other evaluations run while conditions take long. It is nil if the evaluation
	// shares no turn.
	Turn condition.Turn
	// Ended is closed when the request that waits for the decision ends. It is nil if no request
	// waits.
	Ended <-chan struct{}
	// Trace records the steps of the evaluation. If it is nil, nothing is recorded.
	Trace *Trace
}

// Keeper says what a row keeps. It is safe for concurrent use.
type Keeper interface {
	// Intent returns the texts of an intent as a row has them. It returns nil if there can be no row.
	Intent(in *Intent, names AgentNames) *Intent
	// Text returns a text without secrets.
	Text(s string) string
}

// AgentNames returns the names of the intent's agent.
func (in *Input) AgentNames() AgentNames { return in.Names.Of(in.Intent) }

// Set has everything that [Evaluate] needs to decide the intents of one agent under one policy.
type Set struct {
	Policy    *Policy
	Rules     *RuleSet
	Stopped   bool // the organization is stopped
	Agent     AgentStatus
	Names     AgentNames // of the agent
	Revisions Revisions
}

// Revisions has the store's revisions of the last writes to the policy, to the rules, and to the
// agents of a name. A revision is 0 if there was no write.
type Revisions struct{ Policy, Rules, Agent int64 }

// Approval is the approval under which an intent is decided.
type Approval struct {
	ID     string // the id of the decision that was held
	Status string // approved, rejected, expired, revoked or used
}

// Evaluate decides an intent. Every check of p and of the session runs. The findings are the
// checks that fail and then the rule that decides, if a rule matches. If there are no such
// findings, the only finding is [CodePolicyAllowed]. The most restrictive finding decides.
//
// If in.Ended is closed while a condition is running, nothing is decided: see [Result].Err. Time
// has no other influence on a decision.
//
// Evaluate is deterministic and has no side effects. Errors deny, each with its own finding: there
// is no policy or no intent, a resource cannot be read, a check ends in an error. A nil rs has no
// rules. An evaluation that allows the intent allocates nothing.
func Evaluate(p *Policy, rs *RuleSet, in *Input) Result {
	if p == nil || in == nil || in.Intent == nil {
		return in.traced(result([]Finding{{
			Code: CodePolicyMissing, Outcome: Deny,
			Reason: string(CodePolicyMissing) + ": there is no policy to evaluate",
		}}, condition.CauseCounts{}))
	}
	e := newEvaluation(&p.doc, in)
	defer e.Free()
	if in.Trace != nil {
		in.Trace.begin(p, rs, in)
	}

	findings := p.check(&e)
	if in.Session.CompiledSession != nil {
		findings = append(findings, in.Session.check(&e)...)
	}
	ruled, errs := rs.decide(&e)
	if e.ended != nil {
		return in.traced(unfinished(e.ended))
	}
	switch {
	case len(findings) == 0 && len(ruled) > 0:
		findings = ruled
	case len(findings) == 0:
		findings = p.allowed[:]
	default:
		findings = append(findings, ruled...)
	}
	got := result(findings, errs)
	if in.Trace != nil {
		in.Trace.end(&e, got)
	}
	return got
}

// evaluation is one evaluation of a policy and rules. It is not used after [Evaluate] returns.
type evaluation struct {
	*condition.Frame
	in     *Input
	policy *ActionPolicy
	lists  condition.Lists
	rego   *RegoInput // nil until a condition in Rego is asked: see regoInput
	// ended is the rule whose condition was running when the request ended, or nil.
	ended *CompiledRule
}

func newEvaluation(p *ActionPolicy, in *Input) evaluation {
	f, i := condition.NewFrame(), in.Intent
	for k := range condition.Members {
		id := condition.Members[k].ID
		f.SetText(id, *i.Text(id))
	}
	f.SetDecidedAt(in.DecidedAt)
	f.SetResource(i.Resource)
	f.SetMetadata(i.Metadata)
	f.SetCounts(in.Counts)
	if i.Cost != nil {
		f.SetInt(condition.CostAmount, i.Cost.AmountMinor)
		f.SetText(condition.CostCurrency, i.Cost.Currency)
	} else {
		f.SetAbsent(condition.Cost, condition.CostAmount, condition.CostCurrency)
	}
	f.SetAgent(i.AgentID)
	f.SetNames(in.ConditionNames())
	f.SetText(condition.GovernedAgentStatus, in.Agent.String())
	f.SetText(condition.PolicyPolicyID, p.PolicyID)
	f.SetInt(condition.PolicyVersion, p.Version)
	f.SetText(condition.PolicyOrganizationID, p.OrganizationID)
	f.SetText(condition.PolicyAgentID, p.AgentID)
	f.SetText(condition.PolicyStatus, string(p.Status))
	return evaluation{Frame: f, in: in, policy: p}
}

// check returns the findings of the checks that fail, nil if none fails.
func (p *Policy) check(e *evaluation) []Finding {
	findings := slices.Clone(p.unreadable)
	readings, err := e.in.Intent.Readings()
	readable := err == nil
	if readable {
		e.SetReadings(readings)
	} else {
		findings = append(findings, unreadable(err))
	}
	i := 0 // the index of the check in the trace
	for r := range p.rows {
		if readable || r.patterns == nil {
			findings = r.evaluate(p.scope, e, i, findings)
		}
		i++
	}
	return findings
}

func unreadable(err error) Finding {
	return Finding{
		Code: CodeResourceUnreadable, Outcome: Deny,
		Reason: fmt.Sprintf("%s: the resource has no single meaning: %v", CodeResourceUnreadable, err),
	}
}

// evaluate returns findings with the check's finding added if the check fails. i is the check's
// index in the trace.
func (r *checkRow) evaluate(s *scope, e *evaluation, i int, findings []Finding) []Finding {
	holds, err := r.ask(s, e)
	if err == nil && holds && e.in.Trace == nil {
		return findings
	}
	var found *Finding
	switch {
	case err != nil:
		found = &Finding{
			Code: CodeCheckError, Outcome: Deny,
			Reason: fmt.Sprintf("%s: the check %s could not be evaluated", CodeCheckError, r.code),
			Cause:  condition.CauseFunction.String(), Field: r.field,
		}
	case !holds:
		found = r.failure(s, e)
	}
	if e.in.Trace != nil {
		e.in.Trace.checked(i, r, s, e, found)
	}
	if found != nil {
		findings = append(findings, *found)
	}
	return findings
}

// ask reports whether the check holds. A panic is an error.
func (r *checkRow) ask(s *scope, e *evaluation) (holds bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			holds, err = false, fmt.Errorf("the check panicked: %v", r)
		}
	}()
	return r.holds(s, *e), nil
}

// failure returns the finding of a check that fails. The finding names the pattern that matched,
// if a match was the reason.
func (r *checkRow) failure(s *scope, e *evaluation) *Finding {
	finding := r.finding(e.policy)
	if r.named == "" {
		return &finding
	}
	if i, by := r.objected(s, e); i >= 0 {
		finding.Reason = fmt.Sprintf(r.named, condition.Quote(r.entries(e.policy)[i])) + asRead(by)
	}
	return &finding
}

// objected returns the index of the first matching entry of the check's list, or -1. It also
// returns the readers of the resource for which the entry matches.
func (r *checkRow) objected(s *scope, e *evaluation) (int, resource.Reader) {
	if r.patterns != nil {
		return r.patterns(s).FirstMatch(e.Readings())
	}
	return r.actions(s).Match(e.in.Intent.ActionType), resource.Raw
}

// asRead returns a note with the readers for which a pattern matches. It is empty if the pattern
// matches the resource as written.
func asRead(by resource.Reader) string {
	if by&resource.Raw != 0 {
		return ""
	}
	return " (as read by " + by.String() + ")"
}

// result returns the result for findings, which has at least one finding.
func result(findings []Finding, errs condition.CauseCounts) Result {
	decision := Allow
	for i := range findings {
		outcome := findings[i].Outcome
		if outcome < Allow || outcome > Deny {
			outcome = Deny
		}
		decision = max(decision, outcome)
	}
	return Result{Decision: decision, Findings: findings, ConditionErrors: errs}
}
