package rego

import (
	"strconv"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// The readings of the resource in Rego: see [resourceReadings].
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
				"readings.stops == "+condition.Quote(stops.String()), "regex.match("+anchored(text)+", text)")))
		}
	}
	return "every reader in reading.readers { " + name + "_covers(reader, reading.text) }", helpers
}

func ruleOf(head string, lines []string) string {
	return head + " if {\n\t" + strings.Join(lines, "\n\t") + "\n}"
}

// readers writes a set of readers, and readersArray an array of them.
func readers(readers resource.Reader) string { return "{" + readersList(readers) + "}" }

func readersArray(readers resource.Reader) string { return "[" + readersList(readers) + "]" }

func readersList(readers resource.Reader) string {
	names := readers.Names()
	for i, name := range names {
		names[i] = condition.Quote(name)
	}
	return strings.Join(names, ", ")
}

// readingsOfResource defines the check that the readings of the resource are complete. Without readings, as
// in a plain OPA, a resource that is not plain is denied.
func readingsOfResource() string {
	return finding(engine.CodeResourceUnreadable, "not resource_read", "not readings_stale") + `

# What writ makes of the resource: see "writ rego --help" for how to have it.
resource_read if {
	count(blocked_readings) > 0
	count(allowed_readings) > 0
	every reading in array.concat(blocked_readings, allowed_readings) {
		is_string(reading.text)
		count(reading.readers) > 0
		every reader in reading.readers { reader in ` + readers(resource.All) + ` }
		is_array(reading.readers)
	}
	readings.stops in {"", "list", "address"}
}`
}

// resourceReadings defines the readings of the resource. The readings of the input count only if
// they are of this resource: the text as it was written is one of the readings for a block. A test
// that changes the resource leaves the readings of another text there.
const resourceReadings = `blocked_readings := readings.blocked

allowed_readings := readings.allowed

# The input's readings, if they are of this resource. A plain resource needs none.
readings := input.readings if readings_current

else := plain_readings(input.intent.resource)

readings_current if {
	some reading in input.readings.blocked
	reading.text == input.intent.resource
	"raw" in reading.readers
}

readings_stale if {
	"readings" in object.keys(input)
	not readings
}`

// plainReadings defines the readings of a plain resource as [resource.Read] returns them.
func plainReadings() (rules []string) {
	stops := ruleOfStops("_", resource.StopsAtSlash)
	for _, f := range resource.PlainForms() {
		blocked := `[{"text": text, "readers": ` + readersArray(f.Readers|resource.Raw) + `}]`
		if f.Query {
			blocked = `array.concat(
		` + blocked + `,
		[{"text": substring(text, 0, indexof(text, "?")), "readers": ` + readersArray(f.Readers) + `} | contains(text, "?")],
	)`
		}
		rules = append(rules, `plain_readings(text) := {
	"blocked": `+blocked+`,
	"allowed": [{"text": text, "readers": `+readersArray(f.Readers)+`}],
	"stops": plain_stops(text),
} if {
	is_string(text)
	regex.match(`+condition.Quote(f.Is)+`, text)
	not regex.match(`+condition.Quote(f.Not)+`, text)
	count(text) <= `+strconv.Itoa(resource.MaxLength)+`
}`)
		if f.List != "" {
			stops = ruleOfStops("text", resource.StopsInList) + " if regex.match(" + condition.Quote(f.List) +
				", text)\n\nelse := " + condition.Quote(resource.StopsAtSlash.String())
		}
	}
	rules[0] = "# The readings of a resource that every program reads as it was written.\n" + rules[0]
	return append(rules, stops)
}

func ruleOfStops(param string, stops resource.Stops) string {
	return "plain_stops(" + param + ") := " + condition.Quote(stops.String())
}
