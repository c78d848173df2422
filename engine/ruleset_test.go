package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine/condition"
)

// stored returns an active rule with a decision, a condition and a priority.
func stored(id, decision, condition string, priority int64) Rule {
	return Rule{
		ID: id, Name: "name of " + id, Condition: condition, Action: `{"decision":"` + decision + `"}`,
		Priority: priority, IsActive: true, CreatedAt: time.Unix(1000, 0),
	}
}

// decided returns the decision of rules for in as "outcome by rule, n errors".
func decided(t *testing.T, in *Intent, o Options, rules ...Rule) string {
	t.Helper()
	findings, failed := CompileRules(rules, o).decide(testEvaluation(t, in))
	s := "nothing"
	for i, finding := range findings {
		s = strings.Repeat(s+" and ", i) + finding.Outcome.String() + " by " + finding.RuleID
	}
	if n := failed.Total(); n > 0 {
		s += fmt.Sprintf(", %d errors", n)
	}
	return s
}

func TestDecision_Rules_Winner(t *testing.T) {
	const (
		yes = `{"action_type":"deploy.web"}`
		no  = `{"action_type":"other"}`
	)
	inactive := stored("a", "deny", yes, 100)
	inactive.IsActive = false
	older := stored("z", "deny", yes, 100)
	older.CreatedAt = time.Unix(1, 0)
	tests := []struct {
		name  string
		rules []Rule
		want  string
	}{
		{"no rules", nil, "nothing"},
		{"none matches", []Rule{stored("a", "deny", no, 1)}, "nothing"},
		{"inactive rules are not asked", []Rule{inactive}, "nothing"},
		{"the highest priority decides", []Rule{stored("a", "deny", yes, 1), stored("b", "allow", yes, 2)}, "allow by b"},
		{"in any order", []Rule{stored("b", "allow", yes, 2), stored("a", "deny", yes, 1)}, "allow by b"},
		{"of the rules that match", []Rule{stored("a", "deny", yes, 1), stored("b", "allow", no, 2)}, "deny by a"},
		{"a negative priority is lower", []Rule{stored("a", "deny", yes, -1), stored("b", "allow", yes, 0)}, "allow by b"},
		{"on a tie the most restrictive", []Rule{stored("a", "allow", yes, 5), stored("b", "approval_required", yes, 5), stored("c", "deny", yes, 5)}, "deny by c"},
		{"on a tie approval before allow", []Rule{stored("a", "allow", yes, 5), stored("b", "approval_required", yes, 5)}, "approval_required by b"},
		{"then the oldest", []Rule{stored("a", "deny", yes, 100), older}, "deny by z"},
		{"then the least id", []Rule{stored("b", "deny", yes, 100), stored("a", "deny", yes, 100)}, "deny by a"},
		{"approval above a deny decides", []Rule{stored("a", "approval_required", yes, 2), stored("b", "deny", yes, 1)}, "approval_required by a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := decided(t, intentWith(nil), Options{}, tt.rules...); got != tt.want {
				t.Errorf("decide = %s, want %s", got, tt.want)
			}
		})
	}
}

// TestDecision_Rules_ErrorsOnlyTighten checks rules whose condition is an error. A rule that
// allows does not match. A rule that denies matches. A rule that asks for approval asks for it,
// but the rules below it are evaluated too. Their deny wins, and both findings are reported. So an
// error never lifts the deny of a lower rule.
func TestDecision_Rules_ErrorsOnlyTighten(t *testing.T) {
	const missing = `{"cel":"intent.metadata.nothing == 'x'"}`
	tests := []struct {
		name  string
		rules []Rule
		want  string
	}{
		{"deny matches", []Rule{stored("a", "deny", missing, 1)}, "deny by a, 1 errors"},
		{"approval_required matches", []Rule{stored("a", "approval_required", missing, 1)}, "approval_required by a, 1 errors"},
		{"allow does not match", []Rule{stored("a", "allow", missing, 1)}, "nothing, 1 errors"},
		{"allow gives way to lower rules", []Rule{stored("a", "allow", missing, 2), stored("b", "deny", `{}`, 1)}, "deny by b, 1 errors"},
		{"approval_required lifts no deny of a lower rule", []Rule{stored("a", "approval_required", missing, 2), stored("b", "deny", `{}`, 1)}, "approval_required by a and deny by b, 1 errors"},
		{"nor one by an error", []Rule{stored("a", "approval_required", missing, 2), stored("b", "deny", missing, 1)}, "approval_required by a and deny by b, 2 errors"},
		{"approval_required withstands a lower allow, which ends the search", []Rule{
			stored("a", "approval_required", missing, 3), stored("b", "allow", `{}`, 2), stored("c", "deny", `{}`, 1),
		}, "approval_required by a, 1 errors"},
		{"the first approval_required by an error is reported", []Rule{
			stored("a", "approval_required", missing, 3), stored("b", "approval_required", missing, 2), stored("c", "approval_required", `{}`, 1),
		}, "approval_required by a, 2 errors"},
		{"both findings are reported, the rules between them are not", []Rule{
			stored("a", "approval_required", missing, 4), stored("b", "approval_required", missing, 3),
			stored("c", "allow", missing, 2), stored("d", "deny", `{}`, 1),
		}, "approval_required by a and deny by d, 3 errors"},
		{"each is counted until one decides", []Rule{
			stored("a", "allow", missing, 9), stored("b", "allow", missing, 8),
			stored("c", "deny", missing, 7), stored("d", "deny", missing, 6),
		}, "deny by c, 3 errors"},
		{"&& with false is no error", []Rule{stored("a", "deny", `{"cel":"intent.metadata.nothing == 'x' && intent.action_type == 'y'"}`, 1)}, "nothing"},
		{"|| with true is no error", []Rule{stored("a", "allow", `{"cel":"intent.metadata.nothing == 'x' || true"}`, 1)}, "allow by a"},
		{"a missing cost", []Rule{stored("a", "deny", `{"cel":"intent.cost.currency == 'USD'"}`, 1)}, "deny by a, 1 errors"},
		{"forms 1 and 2 are never errors", []Rule{stored("a", "deny", `{"metadata.nothing":"x"}`, 1)}, "nothing"},
		{"a stored condition that does not compile denies", []Rule{stored("a", "deny", `{"unknown":1}`, 1)}, "deny by a, 1 errors"},
		{"a stored condition that does not compile never allows", []Rule{stored("a", "allow", `nonsense`, 1)}, "nothing, 1 errors"},
		{"a stored action that does not compile denies", []Rule{stored("a", "perhaps", `{}`, 1)}, "deny by a, 1 errors"},
		{"a stored action that does not compile denies, whatever its condition", []Rule{stored("a", "perhaps", `{"action_type":"x"}`, 1)}, "deny by a, 1 errors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := intentWith(func(in *Intent) { in.Cost = nil })
			if got := decided(t, in, Options{}, tt.rules...); got != tt.want {
				t.Errorf("decide = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRuleSet_Readings(t *testing.T) {
	tests := []struct {
		name, resource, decision, condition, want string
	}{
		{"deny by a normalised reading", "prod//db", "deny", `{"resource":"prod/db"}`, "deny by a"},
		{"deny by a decoded slash", "prod%2Fdb", "deny", `{"resource":{"$glob":"prod/*"}}`, "deny by a"},
		{"deny by the raw reading", "prod//db", "deny", `{"resource":"prod//db"}`, "deny by a"},
		{"a negation in a deny holds unless every reading of an allowance is equal", "prod//db", "deny", `{"resource":{"$ne":"prod/db"}}`, "nothing"},
		{"deny where one reading of an allowance differs", "prod%2Fdb", "deny", `{"resource":{"$ne":"prod/db"}}`, "deny by a"},
		{"deny in CEL where one reading differs", "prod//db", "deny", `{"cel":"intent.resource != 'prod/db'"}`, "deny by a"},
		{"approval by one reading", "prod/%64b", "approval_required", `{"cel":"intent.resource == 'prod/db'"}`, "approval_required by a"},
		{"allow by the normalised reading", "prod//db", "allow", `{"resource":"prod/db"}`, "allow by a"},
		{"allow not by the raw reading", "prod//db", "allow", `{"cel":"intent.resource == 'prod//db'"}`, "nothing"},
		{"allow by a constant's normal form", "prod//db", "allow", `{"resource":"prod//db"}`, "allow by a"},
		{"deny by a constant's normal form", "https://example.com/", "deny", `{"resource":"HTTPS://Example.com"}`, "deny by a"},
		{"deny by another spelling of a constant", "https://EXAMPLE.com:443/a/../admin", "deny", `{"resource":{"$in":["x","https://Example.com/%61dmin"]}}`, "deny by a"},
		{"a tree's constant likewise", "https://example.com/", "deny", `{"field":"resource","op":"eq","value":"https://example.com"}`, "deny by a"},
		{"allow all but a constant in any spelling", "https://example.com/", "allow", `{"resource":{"$ne":"https://Example.com"}}`, "nothing"},
		{"allow only by every reading", "prod%2Fdb", "allow", `{"resource":"prod/db"}`, "nothing"},
		{"allow by every reading", "prod%2Fdb", "allow", `{"resource":{"$regex":"^prod"}}`, "allow by a"},
		{"rego gets the reading", "prod//db", "allow", `{"rego":"x"}`, "allow by a"},
		{"rego errors tighten", "db", "deny", `{"rego":"x"}`, "deny by a, 1 errors"},
		{"rego errors never allow", "db", "allow", `{"rego":"x"}`, "nothing, 1 errors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := intentWith(func(in *Intent) { in.Resource = tt.resource })
			if got := decided(t, in, stubOptions(), stored("a", tt.decision, tt.condition, 1)); got != tt.want {
				t.Errorf("decide = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRuleSet_Reasons(t *testing.T) {
	tests := []struct {
		name, condition, action, want string
	}{
		{"default deny", `{}`, `{"decision":"deny"}`, `rule.deny: a rule of the organization denies this (rule "No \"prod\"")`},
		{"default approval", `{}`, `{"decision":"wait"}`, `rule.approval_required: a rule of the organization asks for approval (rule "No \"prod\"")`},
		{"default allow", `{}`, `{"decision":"allow"}`, `rule.allow: a rule of the organization allows this (rule "No \"prod\"")`},
		{"the author's", `{}`, `{"decision":"deny","reason":"not on Fridays"}`, `rule.deny: not on Fridays (rule "No \"prod\"")`},
		{"error", `{"cel":"intent.metadata.x == ''"}`, `{"decision":"deny","reason":"not on Fridays"}`,
			`rule.deny: the condition could not be evaluated, which counts as a match (rule "No \"prod\"")`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rule := Rule{ID: "r", Name: `No "prod"`, Condition: tt.condition, Action: tt.action, IsActive: true}
			findings, _ := CompileRules([]Rule{rule}, Options{}).decide(testEvaluation(t, intentWith(nil)))
			if len(findings) != 1 || findings[0].Reason != tt.want {
				t.Errorf("decide = %+v, want the reason %q", findings, tt.want)
			}
		})
	}
}

func TestRuleSet_Broken(t *testing.T) {
	rs := CompileRules([]Rule{stored("a", "deny", `{}`, 1), stored("b", "deny", `{"rego":"x"}`, 1), stored("c", "allow", `[]`, 1)}, Options{})
	var got []string
	for _, b := range rs.Broken() {
		var inv *InvalidError
		if !errors.As(b.Err, &inv) {
			t.Errorf("error of %s = %v, want an *InvalidError", b.RuleID, b.Err)
		}
		got = append(got, b.RuleID)
	}
	if strings.Join(got, " ") != "b c" {
		t.Errorf("Broken() = %v, want b and c", got)
	}
	if n := len(rs.Rules()); n != 3 {
		t.Errorf("Rules() has %d rules, want 3", n)
	}
}

func TestRuleSet_Update(t *testing.T) {
	a, b := stored("a", "deny", `{}`, 1), stored("b", "allow", `{}`, 2)
	rs := CompileRules([]Rule{a, b}, Options{})
	a.Priority = 3
	tests := []struct {
		name  string
		rules []Rule
		want  string
	}{
		{"another priority", []Rule{a, b}, "deny by a"},
		{"another condition", []Rule{stored("a", "deny", `{"action_type":"x"}`, 3), b}, "allow by b"},
		{"another action", []Rule{stored("a", "approval_required", `{}`, 3), b}, "approval_required by a"},
		{"removed", []Rule{b}, "allow by b"},
		{"added", []Rule{a, b, stored("c", "approval_required", `{}`, 4)}, "approval_required by c"},
		{"broken", []Rule{b, stored("c", "approval_required", `?`, 4)}, "approval_required by c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			findings, _ := rs.Update(tt.rules, Options{}).decide(testEvaluation(t, intentWith(nil)))
			if got := findings[0].Outcome.String() + " by " + findings[0].RuleID; got != tt.want {
				t.Errorf("decide after Update = %s, want %s", got, tt.want)
			}
		})
	}
	if findings, _ := rs.decide(testEvaluation(t, intentWith(nil))); findings[0].RuleID != "b" {
		t.Errorf("the set that was updated changed: %+v", findings)
	}
}

func TestRuleSet_NilHasNoRules(t *testing.T) {
	var rs *RuleSet
	if findings, failed := rs.decide(testEvaluation(t, intentWith(nil))); findings != nil || failed.Total() != 0 {
		t.Errorf("decide = %v, %v, want nothing", findings, failed)
	}
}

// TestRuleSet_ListsAreCharged checks that the work on each item of a list is charged when it is
// done. A list costs as much work as it has items. Conditions on lists do not use up the work of
// all other conditions.
func TestRuleSet_ListsAreCharged(t *testing.T) {
	rules := make([]Rule, 0, 200)
	for i := range cap(rules) {
		rules = append(rules, stored(string(rune('a'+i)), "deny", `{"metadata.to":{"$every":{"$regex":"^[a-z]{1,50}$"}}}`, 1))
	}
	for _, tt := range []struct{ to, want string }{
		{"A,b", "nothing"},
		{strings.Repeat("a,", condition.MaxText/2-1) + "A", "deny"},
	} {
		got := decided(t, intentWith(func(in *Intent) { in.Metadata = map[string]string{"to": tt.to} }), Options{}, rules...)
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("decide of %d bytes = %s, want %s", len(tt.to), got, tt.want)
		}
	}
}

// TestDecision_Rules_StoredRulesKeepRunning checks that stored rules keep running although a new
// rule with the same condition would be refused.
func TestDecision_Rules_StoredRulesKeepRunning(t *testing.T) {
	for _, doc := range []string{`{"metadata.n":{"$gt":"5000"}}`, `{"cel":"intent.metadata.n > '5000'"}`} {
		r := stored("a", "deny", doc, 1)
		if _, err := CompileRule(r, Options{}); err == nil {
			t.Errorf("CompileRule(%s) accepts a new rule", doc)
		}
		in := intentWith(func(in *Intent) { in.Metadata = map[string]string{"n": "6"} })
		if got := decided(t, in, Options{}, r); got != "deny by a" {
			t.Errorf("%s decides %s, want deny by a", doc, got)
		}
	}
}
