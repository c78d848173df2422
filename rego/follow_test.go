package rego

import (
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
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

// TestReview_LibrariesAreFollowed checks that the input's type is followed into the functions of libraries,
// through chains of them, and that the mistake is at the call in the rule.
func TestReview_LibrariesAreFollowed(t *testing.T) {
	l, err := CompileLibraries([]engine.Library{
		lib("x", "f(i) if i.actiontype == \"pay\"\n\nok(i) if i.action_type == \"pay\"\n\nmeta(i) if i.metadata.env == \"prod\""),
		lib("far", "import data.lib.x\n\nimport data.lib.x.f as is_f\n\n"+
			"g(i) if x.f(i)\n\nh(i) if {\n\tintent := i.intent\n\tis_f(intent)\n}\n\nok(i) if x.ok(i)\n\n"+
			"own(i) if {\n\tcost := 1\n\tcost == 1\n\tpart(i.cost)\n}\n\npart(c) if c.amount > 1\n\n"+
			"by_key(i) if object.get(i, \"actiontype\", \"\") == \"\"\n\nthing := input.intent"),
	})
	if err != nil {
		t.Fatal(err)
	}
	const undefined = "undefined ref: input.intent."
	for source, want := range map[string]string{
		"data.lib.x.f(input.intent)":                                                        "line 1, column 1: the library reads what the input never has, at x/x.rego:3:9: " + undefined + "actiontype: did you mean action_type?",
		"data.lib.x.f(input)":                                                               "x/x.rego:3:9: undefined ref: input.actiontype",
		"data.lib.x.ok(input.intent)":                                                       "",
		"data.lib.x.meta(input.intent)":                                                     "",
		"not data.lib.x.f(input.intent)":                                                    undefined + "actiontype",
		"package a\n\nimport data.lib.x\n\nmatch if x.f(input.intent)":                      "line 5, column 10: the library reads what the input never has, at x/x.rego:3:9: " + undefined + "actiontype",
		"package a\n\nimport data.lib.x.f as is_f\n\nmatch if is_f(input.intent)":           undefined + "actiontype",
		"package a\n\nimport input.intent as i\n\nmatch if data.lib.x.f(i)":                 undefined + "actiontype",
		"package a\n\nmatch if {\n\ti := input.intent\n\tdata.lib.x.f(i)\n}":                undefined + "actiontype",
		"package a\n\nown(i) if data.lib.x.f(i)\n\nmatch if own(input.intent)":              "line 3, column 11: the library reads what the input never has, at x/x.rego:3:9: " + undefined + "actiontype",
		"package a\n\nown(i) if data.lib.x.ok(i)\n\nmatch if data.a.own(input.intent)":      "",
		"package a\n\nown(i) if i.actiontype == \"x\"\n\nmatch if data.a.own(input.intent)": "line 3, column 11: " + undefined + "actiontype",
		"package a\n\nimport data.lib.far\n\nmatch if far.g(input.intent)":                  "line 5, column 10: the library reads what the input never has, at x/x.rego:3:9: " + undefined + "actiontype",
		"package a\n\nimport data.lib.far\n\nmatch if far.h(input)":                         "line 5, column 10: the library reads what the input never has, at x/x.rego:3:9: " + undefined + "actiontype",
		"data.lib.far.ok(input.intent)":                                                     "",
		"data.lib.far.own(input.intent)":                                                    "far/far.rego:22:12: " + undefined + "cost.amount",
		"data.lib.far.by_key(input.intent)":                                                 "far/far.rego:24:28: " + undefined + "actiontype",
		"data.lib.x.f(data.lib.far.thing)":                                                  undefined + "actiontype",
		"data.lib.x.f({\"actiontype\": input.intent.action_type})":                          "",
		// A name of the rule means nothing in the library.
		"package a\n\ncost := {\"x\": 1}\n\nmatch if data.lib.far.own(input.intent)": undefined + "cost.amount",
	} {
		t.Run(source, func(t *testing.T) {
			rule := sampleRule("1", "1", `{"rego":`+condition.Quote(source)+`}`, `{"decision":"deny"}`)
			_, err := engine.CompileRule(rule, engine.Options{CompileRego: CompileCondition, Libraries: l})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("CompileRule = %v, want %q", err, want)
			}
		})
	}
}

// TestLibraries_AreFollowed checks that a library that passes the input to a function that reads what
// it never has is refused with the place.
func TestLibraries_AreFollowed(t *testing.T) {
	x := lib("x", "f(i) if i.actiontype == \"pay\"")
	for source, want := range map[string]string{
		"bad if data.lib.x.f(input.intent)":                                                         "x/x.rego:3:9: undefined ref: input.intent.actiontype",
		"import data.lib.x\n\nown(i) if x.f(i.intent)\n\nbad if own(input)":                         "x/x.rego:3:9: undefined ref: input.intent.actiontype",
		"own(i) if i.amount > 1\n\nbad if own(input.intent.cost)":                                   "a/a.rego:3:11: undefined ref: input.intent.cost.amount",
		"bad if object.get(input.intent, \"actiontype\", \"\") == \"\"":                             "a/a.rego:3:33: undefined ref: input.intent.actiontype",
		"fine(i) if data.lib.x.f(i)\n\nown(i) if i.amount_minor > 1\n\nb if own(input.intent.cost)": "",
	} {
		_, err := CompileLibraries([]engine.Library{x, lib("a", source)})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: CompileLibraries = %v, want %q", source, err, want)
		}
	}
}
