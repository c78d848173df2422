package rego

import (
	"fmt"
	"strings"

	"writ/engine"
)

// checks defines what the policy's own checks find, and what each code means.
func (l *lowering) checks() []string {
	parts := []string{engine.RegoReadings}
	var sentences strings.Builder
	sentences.WriteString(sentence(engine.CodeResourceUnreadable,
		string(engine.CodeResourceUnreadable)+": the input does not say how the resource is read"))
	asking := []string{engine.Quote(string(engine.CodeRuleApprovalRequired))}
	for _, c := range engine.Checks(l.policy) {
		if c.Rego != "" {
			parts = append(parts, c.Rego)
		}
		if c.Outcome == engine.ApprovalRequired {
			asking = append(asking, engine.Quote(string(c.Code)))
		}
		sentences.WriteString(sentence(c.Code, c.Reason))
	}
	sentences.WriteString(sentence(engine.CodePolicyAllowed,
		fmt.Sprintf("%s: version %d of the policy allows it", engine.CodePolicyAllowed, l.policy.Version)))
	return append(parts, "asking := {"+strings.Join(asking, ", ")+"}", "sentences := [\n"+sentences.String()+"]")
}

func sentence(code engine.Code, text string) string {
	return fmt.Sprintf("\t[%s, %s],\n", engine.Quote(string(code)), engine.Quote(text))
}
