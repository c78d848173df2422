package suite

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/authoring/document"
)

const sessionHead = `policy: p.yaml
rules: {name: Stage only, condition: {resource: "db://prod/**"}, action: {decision: deny}, priority: 900, isActive: true}
now: 2026-11-02T10:00:00Z
intents:
  read: {agent_id: bot, action_type: db.read, resource: "db://stage/a", cost: {amount_minor: 5, currency: EUR}}
tests:
`

// TestRun_Session checks that both the engine and Rego decide a case with its session. The coverage
// must include the case.
func TestRun_Session(t *testing.T) {
	report := runText(t, sessionHead+`
  - {name: within, intent: read, session: {allowed_action_types: ["db.*"], allowed_resource_patterns: ["db://stage/**"], max_cost_minor: 5}, want: allow, codes: [policy.allowed]}
  - {name: another type, intent: read, session: {allowed_action_types: [db.write]}, want: deny, codes: [session.not_allowed]}
  - {name: another resource, intent: read, session: {allowed_resource_patterns: ["db://stage/b"]}, want: deny, codes: [session.not_allowed]}
  - {name: dearer, intent: read, session: {max_cost_minor: 4}, want: deny, codes: [session.not_allowed]}
  - {name: it narrows nothing, intent: read, session: {}, want: allow}
  - name: rows
    intent: read
    session: &write {allowed_action_types: [db.write]}
    table: {columns: [session, want], rows: [[null, deny], [{allowed_action_types: [db.read]}, allow], [*write, deny]]}
  - {name: each, intent: read, each: {session: [{max_cost_minor: 4}, {max_cost_minor: 3}]}, want: deny}
  - {name: no rule is lifted, intent: read, set: {resource: "db://prod/a"}, session: {allowed_resource_patterns: ["db://prod/**"]}, want: deny, rule: Stage only}
`, Options{Rego: true, Coverage: true})
	for _, r := range report.Failed() {
		t.Errorf("%s: %s %v", r.ID(), r, r.Explained)
	}
	if len(report.Results) != 11 {
		t.Errorf("there are %d cases, want 11", len(report.Results))
	}
	for _, r := range report.Results {
		if r.NotCompared != "" {
			t.Errorf("%s is not compared with Rego: %s", r.ID(), r.NotCompared)
		}
	}
}

// TestRun_SessionExplained checks a case that fails because of its session. The explanation must
// name the session's finding.
func TestRun_SessionExplained(t *testing.T) {
	report := runText(t, sessionHead+"  - {name: a, intent: read, session: {max_cost_minor: 4}, want: allow}\n", Options{})
	want := []string{"+ session.not_allowed: the cost is above the session's cap of 4 minor units"}
	if diff := cmp.Diff(want, report.Results[0].Explained); diff != "" {
		t.Errorf("explained (-want +got):\n%s", diff)
	}
}

// TestRun_ShowsPrints checks that a failing case shows what the rules print, and another one does not.
func TestRun_ShowsPrints(t *testing.T) {
	text := strings.Replace(sessionHead, `{resource: "db://prod/**"}`, `{rego: 'print("of", input.intent.action_type); false'}`, 1)
	report := runText(t, text+"  - {name: a, intent: read, want: deny}\n  - {name: b, intent: read, want: allow}\n", Options{})
	want := []string{`print: rule "Stage only", line 1: of db.read`}
	if got := report.Results[0].Explained; len(got) == 0 || got[len(got)-1] != want[0] {
		t.Errorf("explained = %q, want %q at the end", got, want)
	}
	if got := report.Results[1].Explained; got != nil {
		t.Errorf("a case that holds is explained: %q", got)
	}
}

func TestLoad_Session_Invalid(t *testing.T) {
	for session, want := range map[string]string{
		"{allowed_action_types: []}":                 "tests[0].session.allowed_action_types: is empty",
		"{allowed_resource_patterns: [\"db://[a\"]}": "tests[0].session.allowed_resource_patterns[0]: is not a valid pattern",
		"{max_cost_minor: -1}":                       "tests[0].session.max_cost_minor: ",
		"{max_cost: 5}":                              "tests[0].session.max_cost: unknown field: did you mean max_cost_minor?",
		"{max_cost_minor: 5, ttl: 60}":               "tests[0].session.ttl: unknown field",
		"one-refund":                                 "tests[0].session: want an object",
		"{allowed_action_types: db.read}":            "tests[0].session.allowed_action_types: want an array",
	} {
		_, err := loaderOf(map[string]string{"s.yaml": sessionHead + "  - {name: a, intent: read, want: deny, session: " + session + "}\n"}).Load("s.yaml")
		var placed *document.Error
		if !errors.As(err, &placed) || len(placed.Problems) != 1 || !strings.Contains(err.Error(), want) || placed.Problems[0].Line != 7 {
			t.Errorf("Load(session: %s) = %v, want one problem of line 7 with %s", session, err, want)
		}
	}
}
