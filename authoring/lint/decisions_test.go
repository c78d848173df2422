package lint_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition/conditiontest"
)

// TestDecision_Rules_WarnsOfKeysThatMayBeLeftOut checks this decision:
// "… and `writ check` warns where a deny or an approval rests on a key that the
// caller may leave out."
func TestDecision_Rules_WarnsOfKeysThatMayBeLeftOut(t *testing.T) {
	const escapes, fails = "does not match then", "that is an error, with which the rule "
	for _, tc := range []struct{ decision, condition, want string }{
		{"deny", `{"metadata.env":"prod"}`, escapes},
		{"approval_required", `{"metadata.env":"prod"}`, escapes},
		{"allow", `{"metadata.env":"prod"}`, ""},
		{"deny", `{"metadata.n":{"$gt":5}}`, escapes},
		{"deny", `{"metadata.to":{"$some":["a"]}}`, escapes},
		{"deny", `{"metadata.env":{"$ne":"prod"}}`, ""},
		{"deny", `{"$nor":[{"metadata.env":{"$ne":"prod"}}]}`, escapes},
		{"deny", `{"metadata.env":{"$exists":true,"$eq":"prod"}}`, ""},
		{"deny", `{"$or":[{"metadata.env":"prod"},{"metadata.env":{"$exists":false}}]}`, ""},
		{"deny", `{"metadata.fact.env":"prod"}`, ""},
		{"deny", `{"all":[{"field":"action_type","op":"eq","value":"deploy"},{"field":"metadata.env","op":"in","value":["a","b"]}]}`, escapes},
		{"deny", `{"cel":"intent.metadata.env == 'prod'"}`, fails + "denies"},
		{"deny", `{"cel":"intent.metadata['env'] != 'prod'"}`, fails + "denies"},
		{"approval_required", `{"cel":"int(intent.metadata.env) > 5"}`, fails + "asks for approval"},
		{"allow", `{"cel":"intent.metadata.env == 'prod'"}`, ""},
		{"deny", `{"cel":"'env' in intent.metadata && intent.metadata.env == 'prod'"}`, ""},
		{"deny", `{"cel":"has(intent.metadata.env) && intent.metadata.env == 'prod'"}`, ""},
		{"deny", `{"cel":"intent.metadata['fact.env'] == 'prod'"}`, ""},
		{"deny", `{"cel":"intent.action_type == 'deploy'"}`, ""},
		{"deny", `{"action_type":"deploy"}`, ""},
		{"deny", `{"count":{"by":["agent_id"],"window":"1h"},"gt":20}`, ""}, // every intent has an agent_id
		{"deny", `{"sum":{"field":"cost.amount_minor","currency":"EUR","by":["agent_id"],"window":"24h"},"gt":20000}`, escapes},
		{"approval_required", `{"sum":{"field":"cost.amount_minor","currency":"EUR","window":"24h"},"gt":20000}`, escapes},
		{"deny", `{"any":[{"field":"cost","op":"exists","value":false},{"sum":{"field":"cost.amount_minor","currency":"EUR","window":"24h"},"gt":20000}]}`, ""},
		{"allow", `{"sum":{"field":"cost.amount_minor","currency":"EUR","window":"24h"},"lt":20000}`, ""},
	} {
		t.Run(tc.decision+" "+tc.condition, func(t *testing.T) { wantWarning(t, tc.decision, tc.condition, tc.want) })
	}
}

// wantWarning checks the warnings about missing keys and about excepted resources. If want is
// empty, the rule must have no such warning. Otherwise it must have one, and its text must contain
// want.
func wantWarning(t *testing.T, decision, condition, want string) {
	t.Helper()
	rule := engine.Rule{Name: "r", Condition: condition, Action: `{"decision":"` + decision + `"}`}
	got := slices.DeleteFunc(lint.Rules(compile(t, []engine.Rule{rule})), func(w lint.Warning) bool {
		return w.Rule != "unguarded-key" && w.Rule != "excepts-resource"
	})
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("warnings = %v, want none", got)
	case want != "" && (len(got) != 1 || got[0].Field != "rules[0].condition" || !strings.Contains(got[0].Message+got[0].Instead, want)):
		t.Errorf("warnings = %v, want one that says %q", got, want)
	}
}

// TestDecision_Resources_WarnsOfWhatCELExcepts checks this decision:
// "So a CEL rule that denies by `intent.resource != …` also denies that text, by its
// reading without the query: the docs say so and `writ check` warns."
func TestDecision_Resources_WarnsOfWhatCELExcepts(t *testing.T) {
	for condition, warns := range map[string]bool{
		`{"cel":"intent.resource != 'a?b'"}`:                                          true,
		`{"cel":"'a?b' != intent.resource"}`:                                          true,
		`{"cel":"!(intent.resource == 'a?b')"}`:                                       true,
		`{"cel":"!(intent.resource in ['a?b', 'c'])"}`:                                true,
		`{"cel":"!intent.resource.startsWith('a')"}`:                                  true,
		`{"cel":"!resource_glob('a/**', intent.resource)"}`:                           true,
		`{"cel":"intent.action_type == 'x' && !(intent.resource == 'a' || false)"}`:   true,
		`{"cel":"intent.resource == 'a' ? false : true"}`:                             true,
		`{"cel":"['a', 'b'].all(x, x != intent.resource)"}`:                           true,
		`{"cel":"!['a', 'b'].exists(x, x == intent.resource)"}`:                       true,
		`{"cel":"!(intent.resource != 'a')"}`:                                         false,
		`{"cel":"intent.resource == 'a'"}`:                                            false,
		`{"cel":"['a', 'b'].exists(x, x == intent.resource)"}`:                        false,
		`{"cel":"intent.resource.startsWith('a') && intent.action_type != 'deploy'"}`: false,
		`{"resource":{"$ne":"a?b"}}`:                                                  false,
	} {
		for _, decision := range []string{"deny", "approval_required", "allow"} {
			want := ""
			if warns && decision != "allow" {
				want = `write a match object such as {"resource":{"$ne":"…"}}`
			}
			t.Run(decision+" "+condition, func(t *testing.T) { wantWarning(t, decision, condition, want) })
		}
	}
}

// TestExceptsResource_IsTrue checks that the warning describes the rule correctly, and that a rule
// written as advised does not have the problem.
func TestExceptsResource_IsTrue(t *testing.T) {
	const excepted = "https://x.example/y?z=1"
	policy := compilePolicy(t, &engine.ActionPolicy{
		PolicyID: policyID, Version: 1, OrganizationID: "acme", AgentID: "*", AllowedActionTypes: []string{"*"}, Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
	})
	in := generator{conditiontest.New(1)}.intent()
	in.Resource = excepted
	for condition, want := range map[string]engine.Decision{
		`{"cel":"intent.resource != '` + excepted + `'"}`: engine.Deny,
		`{"resource":{"$ne":"` + excepted + `"}}`:         engine.Allow,
	} {
		rules := engine.CompileRules([]engine.Rule{{ID: "r", Name: "r", Condition: condition, Action: `{"decision":"deny"}`, IsActive: true}}, engine.Options{})
		if got := engine.Evaluate(policy, rules, &engine.Input{Intent: in}); got.Decision != want || got.ConditionErrors.Total() > 0 {
			t.Errorf("%s of %s: %v, want %v", condition, excepted, got, want)
		}
	}
}
