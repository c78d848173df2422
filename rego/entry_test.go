package rego

import (
	"strings"
	"testing"

	"writ.example/writ/engine"
)

// TestEntries_FitTheAction checks which actions a module goes with, by the name of the rule that
// decides, and that only one decides.
func TestEntries_FitTheAction(t *testing.T) {
	for _, tt := range []struct{ source, deny, allow, wait string }{
		{"package a\n\nmatch if input.intent.cost", "", "", ""},
		{"package a\n\ndeny if input.intent.cost", "", "line 3, column 1: deny is for a rule whose action is deny, and this one's is allow: write `match if { … }`",
			"line 3, column 1: deny is for a rule whose action is deny, and this one's is approval_required: write `match if { … }`"},
		{"package a\n\ndeny contains \"no\" if input.intent.cost", "", "line 3, column 1: deny is for a rule whose action is deny, and this one's is allow: write `match if { … }`, and `reason contains msg", "line 3, column 1: deny is for"},
		{"package a\n\nallow if input.intent.cost", "line 3, column 1: allow is for a rule whose action is allow, and this one's is deny: write `match if { … }`", "",
			"line 3, column 1: allow is for a rule whose action is allow, and this one's is approval_required"},
		{"package a\n\nmatch if deny\n\ndeny if input.intent.cost", "line 5, column 1: the module defines deny beside match, and only one can decide: give deny another name",
			"line 5, column 1: the module defines deny beside match", "line 5, column 1: the module defines deny beside match"},
		{"package a\n\nallow if input.intent.cost\n\ndeny contains \"no\"", "line 3, column 1: the module defines allow beside deny", "line 5, column 1: deny is for", "line 5, column 1: deny is for"},
		{"package a\n\nallow.x if input.intent.cost\n\nmatch if allow.x", "line 3, column 1: the module defines allow beside match", "line 3, column 1: the module defines allow", "line 3, column 1: the module defines"},
	} {
		for action, want := range map[string]string{"deny": tt.deny, "allow": tt.allow, "wait": tt.wait} {
			r := engine.Rule{Name: "r", Condition: marshal(map[string]string{"rego": tt.source}), Action: `{"decision":"` + action + `"}`}
			err := engine.ValidateRule(r, engine.Options{CompileRego: CompileCondition})
			switch {
			case want == "" && err != nil:
				t.Errorf("%s with %s = %v", action, tt.source, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s with %s = %v, want %q", action, tt.source, err, want)
			}
		}
	}
}
