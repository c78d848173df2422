package rego

import (
	"fmt"
	"strings"
	"unicode"

	"writ/engine"
)

// checks defines what the policy's own checks find, and the table of their
// reasons.
func (l *lowering) checks() []string {
	parts := []string{engine.RegoReadings}
	sentences := make([]string, 0, 12)
	for _, c := range engine.Checks(l.policy) {
		parts = append(parts, finding(c))
		if c.RegoDefs != "" {
			parts = append(parts, c.RegoDefs)
		}
		sentences = append(sentences, sentence(c.Code, c.Reason))
	}
	sentences = append(sentences, sentence(engine.CodePolicyAllowed,
		fmt.Sprintf("%s: version %d of the policy allows it", engine.CodePolicyAllowed, l.policy.Version)))
	return append(parts, "sentences := [\n"+strings.Join(sentences, "")+"]")
}

// finding defines the finding of a check that fails.
func finding(c engine.Check) string {
	fails, negative := strings.CutPrefix(c.Rego, "not ")
	if !negative {
		fails = "not " + c.Rego
	}
	set := "denials"
	if c.Outcome == engine.ApprovalRequired {
		set = "approvals"
	}
	return fmt.Sprintf("%s contains %s if %s", set, quote(string(c.Code)), fails)
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
