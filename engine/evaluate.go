package engine

import (
	"fmt"
	"slices"

	"writ/engine/condition"
	"writ/engine/resource"
)

// Input is the input of an evaluation, apart from the policy and the rules.
type Input struct {
	// Intent is what is decided; it has passed [Intent.Validate].
	Intent *Intent
	// Agent is the state of the kill switch of the agent that the intent names.
	Agent AgentStatus
	// RequireRegistered denies agents that the organization has not registered.
	RequireRegistered bool
	Usage             Usage
	// Counts are the counts of all [RuleSet.Counters]. A condition that reads a missing one
	// is an error.
	Counts []condition.Count
	// Approval is the approval that the intent is decided under, nil for none. No check
	// reads it: an external core may.
	Approval *Approval
	// Session is the one that the intent is proposed in.
	Session InSession
	// Turn is offered to others while conditions take long; nil if it is not shared.
	Turn condition.Turn
	// Trace records the steps of the evaluation; nil records none.
	Trace *Trace
}

// Set is what [Evaluate] needs to decide the intents of one agent under one policy.
type Set struct {
	Policy    *Policy
	Rules     *RuleSet
	Agent     AgentStatus
	Revisions Revisions
}

// Revisions are a store's revisions of the last write to a policy, to the rules and to the
// agents of a name; 0 if there was no write.
type Revisions struct{ Policy, Rules, Agent int64 }

// Approval is the approval that an intent is decided under.
type Approval struct {
	ID     string // of the decision that was held
	Status string // approved, rejected, expired, revoked or used
}

// Evaluate decides an intent. Every check of p and of the session runs. The findings are
// the checks that fail and then the rule that decides, if one matches. Without these the
// finding is [CodePolicyAllowed]. The most restrictive finding decides.
//
// Evaluate is deterministic and has no side effects. Errors deny, each with a finding of its
// own: no policy, no intent, a resource that cannot be read, a check that ends in an error.
// A nil rs has no rules. Allowing allocates nothing.
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

// evaluation is one evaluation of a policy and rules. It lives as long as [Evaluate].
type evaluation struct {
	*condition.Frame
	in     *Input
	policy *ActionPolicy
	lists  condition.Lists
}

func newEvaluation(p *ActionPolicy, in *Input) evaluation {
	f, i := condition.NewFrame(), in.Intent
	for k := range condition.Members {
		id := condition.Members[k].ID
		f.SetText(id, *i.Text(id))
	}
	f.SetResource(i.Resource)
	f.SetMetadata(i.Metadata)
	f.SetCounts(in.Counts)
	if i.Cost != nil {
		f.SetInt(condition.CostAmount, i.Cost.AmountMinor)
		f.SetText(condition.CostCurrency, i.Cost.Currency)
	} else {
		f.SetAbsent(condition.Cost, condition.CostAmount, condition.CostCurrency)
	}
	f.SetText(condition.GovernedAgentID, i.AgentID)
	f.SetText(condition.GovernedAgentStatus, in.Agent.String())
	f.SetText(condition.PolicyPolicyID, p.PolicyID)
	f.SetInt(condition.PolicyVersion, p.Version)
	f.SetText(condition.PolicyOrganizationID, p.OrganizationID)
	f.SetText(condition.PolicyAgentID, p.AgentID)
	f.SetText(condition.PolicyStatus, string(p.Status))
	return evaluation{Frame: f, in: in, policy: p}
}

// check returns the findings of the checks that fail, nil if none does.
func (p *Policy) check(e *evaluation) []Finding {
	findings := slices.Clone(p.unreadable)
	readings, err := e.in.Intent.Readings()
	readable := err == nil
	if readable {
		e.SetReadings(readings)
	} else {
		findings = append(findings, unreadable(err))
	}
	i := 0 // in the trace
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

// evaluate adds the finding of the check, unless it holds. i is its index in the trace.
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

// failure returns the finding of a check that fails. It names the pattern that matched.
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

// objected returns the index of the first entry of the check's list that matches, -1 if
// none does, and the readers of the resource that see the match.
func (r *checkRow) objected(s *scope, e *evaluation) (int, resource.Reader) {
	if r.patterns != nil {
		return r.patterns(s).FirstMatch(e.Readings())
	}
	return r.actions(s).Match(e.in.Intent.ActionType), resource.Raw
}

// asRead names the readers that see a match, unless the resource matches as written.
func asRead(by resource.Reader) string {
	if by&resource.Raw != 0 {
		return ""
	}
	return " (as read by " + by.String() + ")"
}

// result combines findings, of which there is at least one.
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
