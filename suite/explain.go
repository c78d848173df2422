package suite

import (
	"fmt"
	"slices"

	"writ/engine"
)

// explain says of what is not as wanted how it came about.
func (r *Result) explain(s *subject) {
	in := r.Case.Input
	in.Trace = &engine.Trace{}
	result := engine.Evaluate(s.policy, s.set, &in)
	want, decides := r.Case.want.codes, r.Got != r.Want
	for _, f := range result.Findings {
		if !slices.Contains(want, f.Code) || decides && f.Outcome == result.Decision {
			r.Explained = append(r.Explained, "+ "+f.Reason)
		}
	}
	for _, code := range want {
		if !slices.Contains(r.Codes, code) {
			r.Explained = append(r.Explained, "- "+missing(code, in.Trace))
		}
	}
	for _, a := range in.Trace.Rules {
		if doc := a.Rule.Rule(); a.Err != nil {
			r.Explained = append(r.Explained, fmt.Sprintf("  the rule %q is an error: %v", doc.Name, a.Err))
		}
	}
}

// missing says why there is no finding of a code.
func missing(code engine.Code, t *engine.Trace) string {
	for _, c := range t.Checks {
		if c.Code == code {
			return string(code) + ": the check holds"
		}
	}
	if _, ok := ruleOutcome(code); ok {
		return string(code) + ": no such rule matches"
	}
	if code == engine.CodePolicyAllowed {
		return string(code) + ": something objects, or a rule decides"
	}
	return string(code) + ": the policy has no such check"
}

// ruleOutcome returns the outcome of the rules whose finding has a code.
func ruleOutcome(code engine.Code) (engine.Decision, bool) {
	switch code {
	case engine.CodeRuleAllow, engine.CodeRuleApprovalRequired, engine.CodeRuleDeny:
		return code.Outcome()
	}
	return 0, false
}
