package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestDecision_Rules_Action(t *testing.T) {
	tests := []struct {
		doc  string
		want Decision
	}{
		{`{"decision":"allow"}`, Allow},
		{`{"decision":"deny"}`, Deny},
		{`{"decision":"approval_required"}`, ApprovalRequired},
		{`{"effect":"deny"}`, Deny},
		{`{"type":"allow"}`, Allow},
		{`{"outcome":"deny","reason":"because"}`, Deny},
		{`{"decision":"block"}`, Deny},
		{`{"decision":"wait"}`, ApprovalRequired},
		{`{"type":"require_approval"}`, ApprovalRequired},
		{`{"decision":"deny","reason":"` + strings.Repeat("é", MaxReason) + `"}`, Deny},
	}
	for _, tt := range tests {
		t.Run(tt.doc, func(t *testing.T) {
			if got, err := parseAction(tt.doc); err != nil || got.decision != tt.want {
				t.Errorf("parseAction(%s) = %v, %v, want %v", tt.doc, got.decision, err, tt.want)
			}
		})
	}
}

func TestDecision_Rules_ActionIsInvalid(t *testing.T) {
	tests := []struct {
		doc, want string
	}{
		{``, "action"},
		{`null`, "action"},
		{`"deny"`, "action"},
		{`[]`, "action"},
		{`{}`, "does not say what to do"},
		{`{"reason":"x"}`, "does not say what to do"},
		{`{"decision":"Deny"}`, `unknown decision "Deny"`},
		{`{"decision":"approve"}`, `unknown decision "approve"`},
		{`{"decision":""}`, `unknown decision ""`},
		{`{"decision":null}`, "null"},
		{`{"decision":5}`, "decision"},
		{`{"decision":"deny","effect":"deny"}`, "says twice"},
		{`{"decision":"deny","decision":"allow"}`, "more than once"},
		{`{"Decision":"deny"}`, "unknown field"},
		{`{"decision":"deny","until":"x"}`, "until: unknown field: want one of decision, effect, type, outcome, reason"},
		{`{"decision":"deny"} {}`, "action"},
		{`{"decision":"deny","reason":5}`, "reason"},
		{`{"decision":"deny","reason":"a\nb"}`, "control character"},
		{`{"decision":"deny","reason":"` + strings.Repeat("x", MaxReason+1) + `"}`, "longer than 500 characters"},
	}
	for _, tt := range tests {
		t.Run(tt.doc, func(t *testing.T) {
			_, err := parseAction(tt.doc)
			wantInvalid(t, err, "action", tt.want)
		})
	}
}

func TestValidateRule_ReportsConditionAndAction(t *testing.T) {
	err := ValidateRule(Rule{Condition: `{"foo":1}`, Action: `{"decision":"maybe"}`}, Options{})
	var inv *InvalidError
	if !errors.As(err, &inv) || len(inv.Fields) != 2 || inv.Fields[0].Field != "condition" || inv.Fields[1].Field != "action" {
		t.Errorf("ValidateRule = %v, want one mistake of each", err)
	}
	if err := ValidateRule(Rule{Condition: `{}`, Action: `{"decision":"deny"}`}, Options{}); err != nil {
		t.Errorf("ValidateRule = %v, want no error", err)
	}
}

// TestDecision_Rules_ACounterThatCountsNothingIsRefused checks that a rule beside a counter that can never count what
// the rule is about is refused, and that a stored one keeps running.
func TestDecision_Rules_ACounterThatCountsNothingIsRefused(t *testing.T) {
	rule := func(action, counted string) Rule {
		return Rule{ID: "r", Name: "n", Action: `{"decision":"deny"}`, Condition: fmt.Sprintf(
			`{"all":[{"field":"action_type","op":"eq","value":%q},{"count":{"action_type":%q,"window":"1h"},"gte":1}]}`, action, counted)}
	}
	bad := rule("email.send", "web.fetch")
	_, err := CompileRule(bad, Options{})
	wantInvalid(t, err, "condition", "can never count what the rule is about")
	wantInvalid(t, err, "condition", "count of web.fetch in 3600s")
	if _, err := CompileRule(bad, Options{stored: true}); err != nil {
		t.Errorf("a stored rule: %v, want it to run", err)
	}
	for _, counted := range []string{"email.send", "email.*", "*", "*.send"} {
		if _, err := CompileRule(rule("email.send", counted), Options{}); err != nil {
			t.Errorf("CompileRule with a counter of %s = %v", counted, err)
		}
	}
}

func TestCompileRule_RegoErrorIsShown(t *testing.T) {
	o := Options{CompileRego: func(source string) (RegoCondition, error) { return nil, errors.New("2:3: unsafe " + source) }}
	_, err := CompileRule(Rule{Condition: `{"rego":"http.send"}`, Action: `{"decision":"deny"}`}, o)
	wantInvalid(t, err, "condition", "at /rego: 2:3: unsafe http.send")
}

// TestValidateRule_AnActionThatIsNotJSONIsNamedOnce checks that the message is about the member
// "action" and not about a whole body.
func TestValidateRule_AnActionThatIsNotJSONIsNamedOnce(t *testing.T) {
	r := Rule{ID: "r", Name: "n", Condition: "{}", Action: "deny"}
	var invalid *InvalidError
	if err := ValidateRule(r, Options{}); !errors.As(err, &invalid) {
		t.Fatalf("ValidateRule(%+v) = %v, want an InvalidError", r, err)
	}
	if f := invalid.Fields[0]; f.Field != "action" || !strings.HasPrefix(f.Message, "is not a JSON object") {
		t.Errorf("ValidateRule(%+v): %s %s, want that action is not a JSON object", r, f.Field, f.Message)
	}
}
