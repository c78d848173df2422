package rego

import (
	"strings"
	"testing"

	"writ/engine"
	"writ/engine/condition"
)

// TestReview_MembersAreFollowed checks that a member that the input never has is refused with its
// place, in functions that the input is passed to and in object.get.
func TestReview_MembersAreFollowed(t *testing.T) {
	const undefined = "undefined ref: "
	for source, want := range map[string]string{
		"is_x(i) if i.actiontype == \"x\"\n\nmatch if is_x(input.intent)":                                   undefined + "input.intent.actiontype",
		"is_x(i) if i.action_type == \"x\"\n\nmatch if is_x(input.intent)":                                  "",
		"is_x(i) if i.intent.actiontype == \"x\"\n\nmatch if is_x(input)":                                   undefined + "input.intent.actiontype",
		"f(i) if g(i.cost)\n\ng(c) if c.amount > 1\n\nmatch if f(input.intent)":                             undefined + "input.intent.cost.amount",
		"f(i) := i.intnt\n\nmatch if f(input) == 1":                                                         undefined + "input.intnt",
		"f(a, i) if i.resource == a\n\nmatch if f(\"x\", input.intent)":                                     "",
		"f(a, i) if i.resorce == a\n\nmatch if f(\"x\", input.intent)":                                      undefined + "input.intent.resorce",
		"f(i) := 1 if i.resource == \"a\" else := 2 if i.resorce == \"b\"\n\nmatch if f(input.intent) == 2": undefined + "input.intent.resorce",
		"f(i) if i.resorce == \"a\"\n\nmatch if {\n\tintent := input.intent\n\tf(intent)\n}":                undefined + "input.intent.resorce",
		"f(i) if i.amount == 1\n\nmatch if {\n\tintent := input.intent\n\tf(intent.cost)\n}":                undefined + "input.intent.cost.amount",
		"f(i) if { every i in [{\"z\": 1}] { i.z == 1 } }\n\nmatch if f(input.intent)":                      "",
		"f([i]) if i.resorce == \"a\"\n\nmatch if f([input.intent])":                                        "", // not followed
		"f(i) if i.metadata.anything == \"a\"\n\nmatch if f(input.intent)":                                  "",
		"match if object.get(input.intent, \"actiontype\", \"\") == \"\"":                                   undefined + "input.intent.actiontype",
		"match if object.get(input, [\"intent\", \"cost\", \"amont\"], 0) == 0":                             undefined + "input.intent.cost.amont",
		"match if object.get(input.intent, \"agent_id\", \"\") == \"\"":                                     "",
		"match if object.get(input.intent.metadata, \"x\", \"\") == \"\"":                                   "",
		"match if {\n\ti := input.intent\n\tobject.get(i, \"resorce\", \"\") == \"\"\n}":                    undefined + "input.intent.resorce",
		"f(i) if object.get(i, \"resorce\", \"\") == \"\"\n\nmatch if f(input.intent)":                      undefined + "input.intent.resorce",
		"match if object.get(input.intent, input.intent.resource, \"\") == \"\"":                            "",
	} {
		t.Run(source, func(t *testing.T) {
			source = "package a\n\n\n" + source
			rule := sampleRule("1", "1", `{"rego":`+condition.Quote(source)+`}`, `{"decision":"deny"}`)
			_, err := engine.CompileRule(rule, engine.Options{CompileRego: CompileCondition})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("CompileRule = %v, want %q", err, want)
			}
		})
	}
}
