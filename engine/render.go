package engine

import (
	"fmt"
	"regexp"
	"strings"

	"writ/engine/glob"
)

// celList writes a list literal.
func celList(members []string) string {
	quoted := make([]string, len(members))
	for i, m := range members {
		quoted[i] = Quote(m)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// celActions writes the test of an action type against a policy's list.
func celActions(types []string) string {
	return fmt.Sprintf("action_matches(%s, intent.action_type)", celList(types))
}

// regoFinding defines a rule that adds code to the findings where all of exprs
// hold.
func regoFinding(code Code, exprs ...string) string {
	head := "findings contains " + Quote(string(code)) + " if "
	if len(exprs) == 1 {
		return head + exprs[0]
	}
	return head + "{\n\t" + strings.Join(exprs, "\n\t") + "\n}"
}

// regoPatterns lists patterns as comments.
func regoPatterns(patterns ...string) string {
	var b strings.Builder
	for _, pattern := range patterns {
		b.WriteString("# " + Quote(pattern) + "\n")
	}
	return b.String()
}

// regoUnion returns the one regular expression that patterns amount to: one
// match is several times faster than a glob.match for each.
func regoUnion(patterns []string, expressions func(string) []string) string {
	var all []string
	for _, pattern := range patterns {
		all = append(all, expressions(pattern)...)
	}
	return anchored(strings.Join(all, "|"))
}

// anchored quotes an expression that has to match a whole text.
func anchored(expression string) string { return Quote("^(?:" + expression + ")$") }

// agentExpressions are the plain expressions of an agent's pattern and the
// pattern itself, which an agent's id can be too.
func agentExpressions(pattern string) []string {
	return append(glob.PlainExpressions(pattern), regexp.QuoteMeta(pattern))
}

// regoActions defines rules with the given head, which hold where the action
// type matches one of types.
func regoActions(head string, types []string) string {
	return regoTypes(head, "input.intent.action_type", types)
}

// regoDenied is regoActions for denied types, which also match what equals them
// after folding: see [deniedActions].
func regoDenied(head string, types []string) string {
	var words, patterns []string
	for _, t := range types {
		folded := string(foldAction(nil, t, !strings.Contains(t, "*")))
		if strings.Contains(t, "*") {
			patterns = appendDistinct(patterns, folded)
		} else {
			words = appendDistinct(words, folded)
		}
	}
	rules := regoTypes(head, "input.intent.action_type", types)
	for _, folded := range []struct {
		types []string
		runs  string
	}{{words, `[._-]+`}, {patterns, `[.]+`}} {
		if len(folded.types) > 0 {
			action := fmt.Sprintf(`regex.replace(lower(input.intent.action_type), "%s", ".")`, folded.runs)
			rules += "\n\n" + regoTypes(head, action, folded.types)
		}
	}
	return rules
}

// regoTypes defines rules with the given head, which hold where action matches
// one of types.
func regoTypes(head, action string, types []string) string {
	var exact, patterns, rules []string
	for _, t := range types {
		if strings.Contains(t, "*") {
			patterns = append(patterns, t)
		} else {
			exact = append(exact, "\t"+Quote(t)+",\n")
		}
	}
	if len(exact) > 0 {
		rules = append(rules, head+" if "+action+" in {\n"+strings.Join(exact, "")+"}")
	}
	if len(patterns) > 0 {
		rules = append(rules, regoPatterns(patterns...)+
			head+" if regex.match("+regoUnion(patterns, actionExpression)+", "+action+")")
	}
	return strings.Join(rules, "\n\n")
}

func actionExpression(pattern string) []string {
	return []string{strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `(?s:.*)`)}
}
