package rego

import (
	"strings"

	"writ/engine/condition"
	"writ/engine/glob"
	"writ/engine/resource"
)

// The readings of the resource in Rego: see [readingsOfResource].
const (
	someBlocked  = "some reading in blocked_readings"
	haveAllowed  = "count(allowed_readings) > 0"
	everyAllowed = "every reading in allowed_readings {"
)

// someReading defines a rule that holds if any reading for a block matches one of exprs.
func someReading(name string, exprs []glob.Expression) string {
	return strings.Join(matches(name, []string{someBlocked}, exprs), "\n\n")
}

// matches defines one rule with the given head for each of exprs. The rule holds if the lines
// before hold and reading matches the expression.
func matches(head string, before []string, exprs []glob.Expression) []string {
	rules := make([]string, len(exprs))
	for i, e := range exprs {
		lines := before
		if e.Readers != resource.All {
			lines = append(lines[:len(lines):len(lines)], "some reader in reading.readers", "reader in "+
				readers(e.Readers))
		}
		rules[i] = ruleOf(head,
			append(lines[:len(lines):len(lines)], "regex.match("+anchored(e.Text)+", reading.text)"))
	}
	return rules
}

// everyReading defines a rule that holds if every reading for an allowance matches exprs.
func everyReading(name string, exprs []glob.Expression) string {
	covered, helpers := covers(name, exprs)
	rule := ruleOf(name, []string{haveAllowed, everyAllowed, "\t" + covered, "}"})
	return strings.Join(append([]string{rule}, helpers...), "\n\n")
}

// covers returns an expression that holds if, for each of its readers, reading matches one of
// exprs. It also returns the helper rules that the expression needs.
func covers(name string, exprs []glob.Expression) (covered string, helpers []string) {
	if len(exprs) == 1 && exprs[0].Readers == resource.All && exprs[0].Stopped == nil {
		return "regex.match(" + anchored(exprs[0].Text) + ", reading.text)", nil
	}
	for _, e := range exprs {
		head, lines := name+"_covers(_, text)", []string(nil)
		if e.Readers != resource.All {
			head, lines = name+"_covers(reader, text)", []string{"reader in " + readers(e.Readers)}
		}
		if e.Stopped == nil {
			helpers = append(helpers, ruleOf(head, append(lines, "regex.match("+anchored(e.Text)+", text)")))
			continue
		}
		for _, stops := range []resource.Stops{resource.StopsAtSlash, resource.StopsInList, resource.StopsAtAt} {
			text := e.Text
			if stops != resource.StopsAtSlash {
				text = e.Stopped[stops]
			}
			helpers = append(helpers, ruleOf(head, append(lines[:len(lines):len(lines)],
				"input.readings.stops == "+condition.Quote(stops.String()), "regex.match("+anchored(text)+", text)")))
		}
	}
	return "every reader in reading.readers { " + name + "_covers(reader, reading.text) }", helpers
}

func ruleOf(head string, lines []string) string {
	return head + " if {\n\t" + strings.Join(lines, "\n\t") + "\n}"
}

// readers writes a set of readers.
func readers(readers resource.Reader) string {
	names := readers.Names()
	for i, name := range names {
		names[i] = condition.Quote(name)
	}
	return "{" + strings.Join(names, ", ") + "}"
}
