package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// maxExplained bounds how many rules with the wanted outcome are explained.
const maxExplained = 5

// explain explains a result that is not as wanted. A + marks a finding that is not wanted. A -
// marks a missing finding.
func (r *Result) explain(s *subject) {
	in := r.Case.Input
	in.Trace = &engine.Trace{}
	engine.Evaluate(s.policy, s.set, &in)
	x := in.Trace.Explain()
	want := r.Case.want
	for _, f := range x.Findings {
		if !slices.Contains(want.codes, f.Code) || r.Got != r.Want && f.Decides {
			r.explained("+ %s", f.Reason)
		}
	}
	for _, code := range want.codes {
		if !slices.Contains(r.Codes, code) {
			r.explainMissing(x, code)
		}
	}
	for i := range x.Rules {
		rule := &x.Rules[i]
		if named := rule.ID == want.rule || rule.Name == want.rule; named && !rule.Decides || rule.Error != "" {
			r.explained("- %s", ruleText(rule))
		}
	}
	r.Explained = slices.Compact(r.Explained)
	in.Trace = nil
	printed, err := rego.Prints(s.policy, s.set, &in)
	if err != nil {
		r.explained("print: %v", err) // cannot happen: the rules have compiled
	}
	for _, p := range printed {
		r.explained("%s", p)
	}
}

func (r *Result) explained(format string, args ...any) {
	r.Explained = append(r.Explained, fmt.Sprintf(format, args...))
}

// explainMissing explains why there is no finding of a code.
func (r *Result) explainMissing(x *engine.Explanation, code engine.Code) {
	if i := slices.IndexFunc(x.Checks, func(c engine.ExplainedCheck) bool { return c.Code == code }); i >= 0 {
		r.explained("- %s: the check holds%s", code, checkText(&x.Checks[i]))
		return
	}
	if !slices.Contains([]engine.Code{engine.CodeRuleAllow, engine.CodeRuleApprovalRequired, engine.CodeRuleDeny},
		code) {
		if code != engine.CodePolicyAllowed {
			r.explained("- %s: the policy has no such check", code)
		}
		return
	}
	outcome, _ := code.Outcome()
	shown := 0
	for i := range x.Rules {
		if rule := &x.Rules[i]; rule.Outcome == outcome && shown < maxExplained {
			r.explained("- %s", ruleText(rule))
			shown++
		}
	}
	if shown == 0 {
		r.explained("- %s: there is no such active rule", code)
	}
}

// checkText returns the field of a check, its value in the policy, and the value that the intent
// has.
func checkText(c *engine.ExplainedCheck) string {
	if c.Value == "" {
		return ""
	}
	return fmt.Sprintf(" (%s: %s; got %s)", strings.TrimPrefix(c.Field, "policy."), c.Value, cmp.Or(c.Got, "none"))
}

// ruleText returns the result of a rule, and the part of its condition that the result comes from.
func ruleText(x *engine.ExplainedRule) string {
	said := map[string]string{
		"match": "matches, and another decides", "no_match": "does not match", "error": "is an error",
		"not_asked": "is not asked: one above it decides",
	}
	text := fmt.Sprintf("the rule %q %s", x.Name, said[x.Result])
	switch {
	case x.Result == "match":
	case x.Because != nil && x.Leaves[*x.Because].Error != "":
		text += fmt.Sprintf(": %s: %s", oneLine(x.Leaves[*x.Because].Text), x.Leaves[*x.Because].Error)
	case x.Because != nil:
		text += fmt.Sprintf(": %s is %s", oneLine(x.Leaves[*x.Because].Text), x.Leaves[*x.Because].Result)
	case x.Error != "":
		text += ": " + x.Error
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
