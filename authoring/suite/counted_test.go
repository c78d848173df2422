package suite

import "testing"

// TestRun_Counted checks that a case sets the values of counters for both engines.
func TestRun_Counted(t *testing.T) {
	report := runText(t, `policy: p.yaml
rules: {name: Twenty an hour, condition: {count: {by: [agent_id], window: 1h}, gt: 20}, action: {decision: deny}, priority: 900, isActive: true}
now: 2026-11-02T10:00:00Z
intents:
  read: {agent_id: bot, action_type: db.read, resource: "db://stage/a"}
tests:
  - {name: rows, intent: read, table: {columns: [counted, want, rule], rows: [[null, allow, null], [19, allow, null], [20, deny, Twenty an hour]]}}
  - {name: of the test, intent: read, counted: 20, want: deny}
`, Options{Rego: true})
	for _, r := range report.Failed() {
		t.Errorf("%s: %s", r.ID(), r)
	}
	if len(report.Results) != 4 {
		t.Errorf("there are %d cases, want 4", len(report.Results))
	}
}
