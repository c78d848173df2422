package suite

import (
	"strings"
	"testing"
)

// TestCoverage_OfRegoHasLines checks that a line of Rego that no case evaluates is listed with its
// place.
func TestCoverage_OfRegoHasLines(t *testing.T) {
	const rules = `name: Frozen
condition:
  rego: |
    startswith(input.intent.resource, "db://")

    input.intent.metadata.window == "freeze"
    input.intent.metadata.zone == "eu"
action: {decision: deny}
isActive: true
priority: 1
---
name: Off
condition: {rego: "input.intent.agent_id == \"x\""}
action: {decision: deny}
isActive: false
priority: 1
`
	covered := func(tests string) string {
		t.Helper()
		l := loaderOf(map[string]string{"f.yaml": rules, "s.yaml": "rules: f.yaml\n" + head + tests})
		var b strings.Builder
		run(t, l, "s.yaml", Options{Coverage: true}).Coverage.WriteText(&b)
		return b.String()
	}
	few := covered(`tests: [{name: a, intent: read, set: {metadata.window: none}, want: allow}]`)
	always := covered(`tests: [{name: b, intent: read, set: {metadata: {window: freeze, zone: eu}}, want: deny}]`)
	if !strings.Contains(always, "never fails to match") || !strings.Contains(always, ": never false\n") {
		t.Errorf("the rule always matches:\n%s", always)
	}
	for _, want := range []string{
		"    1 ! deny \"Frozen\": never matches, never decides\n", `    4       startswith(input.intent.resource, "db://")` + "\n", `    6       input.intent.metadata.window == "freeze"` + "\n",
		`    7 !     input.intent.metadata.zone == "eu": never evaluated` + "\n", "   12   not active: \"Off\"\n", "conditions 60.0 % (3 of 5)",
	} {
		if !strings.Contains(few, want) {
			t.Errorf("coverage lacks %q:\n%s", want, few)
		}
	}
	all := covered(`tests: [{name: a, intent: read, each: {metadata.window: [none, freeze]}, set: {metadata.zone: us}, want: allow}, {name: b, intent: read, set: {metadata: {window: freeze, zone: eu}}, want: deny}]`)
	if !strings.Contains(all, "conditions 100.0 % (5 of 5)") {
		t.Errorf("all should be covered:\n%s", all)
	}
}
