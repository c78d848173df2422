package rego

import (
	"fmt"
	"strings"
	"unicode"

	"writ/engine"
)

// checks defines what the policy's own checks find, and what each code means.
func (l *lowering) checks() []string {
	parts := []string{engine.RegoReadings}
	var sentences strings.Builder
	asking := []string{quote(string(engine.CodeRuleApprovalRequired))}
	for _, c := range engine.Checks(l.policy) {
		if c.Rego != "" {
			parts = append(parts, c.Rego)
		}
		if c.Outcome == engine.ApprovalRequired {
			asking = append(asking, quote(string(c.Code)))
		}
		sentences.WriteString(sentence(c.Code, c.Reason))
	}
	sentences.WriteString(sentence(engine.CodePolicyAllowed,
		fmt.Sprintf("%s: version %d of the policy allows it", engine.CodePolicyAllowed, l.policy.Version)))
	return append(parts, "asking := {"+strings.Join(asking, ", ")+"}", "sentences := [\n"+sentences.String()+"]")
}

func sentence(code engine.Code, text string) string {
	return fmt.Sprintf("\t[%s, %s],\n", quote(string(code)), quote(text))
}

// quote writes s as a string of Rego, which is one of JSON and YAML too. What
// cannot be seen is escaped, so that a module reads as what it says.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case !unicode.IsPrint(r) && r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
