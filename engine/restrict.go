package engine

import "slices"

// Restrict returns res, the result of an external core, with the findings of checks that only writ
// can make. The most restrictive finding wins:
//
//	organization.stopped the organization is stopped
//	policy.inactive      the policy is suspended or revoked
//	agent.disabled       the kill switch has disabled the agent
//	agent.unregistered   the deployment requires registration, and the agent has no registration
//	usage.limit          the organization's meter is used up
//	session.*            the session objects; the core does not know sessions
//
// If Restrict adds a finding, all findings are in check order. Like [Evaluate], Restrict denies if
// there is no policy or no intent.
func (p *Policy) Restrict(res Result, in *Input) Result {
	if p == nil || in == nil || in.Intent == nil {
		return Evaluate(p, nil, in)
	}
	e := newEvaluation(&p.doc, in)
	defer e.Free()
	// the checks that writ makes even if a core decides
	always := []Code{
		CodeOrganizationStopped, CodePolicyInactive, CodeAgentDisabled, CodeAgentUnregistered, CodeUsageLimit,
	}
	added := false
	findings := slices.Clone(res.Findings)
	for r := range p.rows {
		if !slices.Contains(always, r.code) || slices.ContainsFunc(findings, func(f Finding) bool {
			return f.Code == r.code
		}) {
			continue
		}
		if holds, err := r.ask(p.scope, &e); err == nil && holds {
			continue
		}
		findings = append(findings, r.finding(&p.doc))
		added = true
	}
	if in.Session.CompiledSession != nil {
		if readings, err := in.Intent.Readings(); err == nil {
			e.SetReadings(readings)
		}
		objects := in.Session.check(&e)
		findings = append(findings, objects...)
		added = added || len(objects) > 0
	}
	if !added {
		return res
	}
	findings = slices.DeleteFunc(findings, func(f Finding) bool { return f.Code == CodePolicyAllowed })
	order := Codes()
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return slices.Index(order, a.Code) - slices.Index(order, b.Code)
	})
	return result(findings, res.ConditionErrors)
}
