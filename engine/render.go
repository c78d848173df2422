package engine

import (
	"fmt"
	"regexp"
	"strings"
)

// celList writes a list literal.
func celList(members []string) string {
	quoted := make([]string, len(members))
	for i, m := range members {
		quoted[i] = quote(m)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// celActions writes the test of an action type against a policy's list.
func celActions(types []string) string {
	return fmt.Sprintf("action_matches(%s, intent.action_type)", celList(types))
}

// regoSet defines a set of strings, in the order given.
func regoSet(name string, members []string) string {
	if len(members) == 0 {
		return name + " := set()"
	}
	var b strings.Builder
	b.WriteString(name + " := {\n")
	for _, m := range members {
		b.WriteString("\t" + quote(m) + ",\n")
	}
	return b.String() + "}"
}

// regoPattern defines the one regular expression that patterns amount to,
// under a comment that lists them: one match is several times faster than a
// glob.match for each.
func regoPattern(name string, patterns []string, expressions func(string) []string) string {
	var b strings.Builder
	var all []string
	for _, pattern := range patterns {
		b.WriteString("# " + quote(pattern) + "\n")
		all = append(all, expressions(pattern)...)
	}
	return b.String() + name + " := " + quote("^(?:"+strings.Join(all, "|")+")$")
}

// globForms returns the spellings that [Globs] matches patterns in, as globs
// without alternatives. The patterns compile.
func globForms(patterns []string) []string {
	var all []string
	for _, pattern := range patterns {
		for _, form := range resourceForms(pattern) {
			all = append(all, render(form))
		}
	}
	return all
}

// resourceExpressions is [globForms] of one pattern, as regular expressions
// without anchors.
func resourceExpressions(pattern string) []string {
	var all []string
	for _, form := range resourceForms(pattern) {
		all = append(all, unanchored(form))
	}
	return all
}

func resourceForms(pattern string) [][]unit {
	alternatives, _ := parsePattern(pattern)
	var all [][]unit
	for _, units := range alternatives {
		forms, _ := spellings(units)
		all = append(all, forms...)
	}
	return all
}

// plainExpressions is [resourceExpressions] for [CompilePlainGlobs].
func plainExpressions(pattern string) []string {
	alternatives, _ := parsePattern(pattern)
	var all []string
	for _, units := range alternatives {
		all = append(all, unanchored(units))
	}
	return all
}

func unanchored(units []unit) string {
	return strings.TrimSuffix(strings.TrimPrefix(expression(units), `\A`), `\z`)
}

// regoActions defines rule, which holds where the action type matches one of
// types: prefix_types are compared, prefix_pattern is what those with a `*`
// amount to.
func regoActions(rule, prefix string, types []string) string {
	var exact, patterns []string
	for _, t := range types {
		if strings.Contains(t, "*") {
			patterns = append(patterns, t)
		} else {
			exact = append(exact, t)
		}
	}
	defs := regoSet(prefix+"_types", exact) + fmt.Sprintf("\n\n%s if input.intent.action_type in %s_types", rule, prefix)
	if len(patterns) == 0 {
		return defs
	}
	return defs + "\n\n" + regoPattern(prefix+"_pattern", patterns, actionExpression) +
		fmt.Sprintf("\n\n%s if regex.match(%s_pattern, input.intent.action_type)", rule, prefix)
}

func actionExpression(pattern string) []string {
	return []string{strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `(?s:.*)`)}
}
