package suite

import (
	"strings"
	"testing"
)

// TestDecision_DecidedAt_OfASuite checks that a case is decided at its own now, else at the suite's, else at the intent's
// issued_at, by both engines.
func TestDecision_DecidedAt_OfASuite(t *testing.T) {
	const text = `suite: clock
policy: {policy_id: 0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a11, version: 7, organization_id: o, agent_id: "*", allowed_action_types: ["*"], status: active, updated_at: 2026-11-01T09:00:00Z}
rules:
  - {name: tree, condition: {decided_at: {$lt: "2026-11-02T00:00:00+01:00"}}, action: {decision: deny}}
  - {name: rego, condition: {rego: "time.weekday([time.parse_rfc3339_ns(input.decided_at), \"Europe/Berlin\"]) == \"Friday\""}, action: {decision: deny}}
NOW
intents: {i: {agent_id: bot, action_type: x, resource: r, issued_at: "2026-11-01T22:59:59.999Z"}}
tests:
  - {name: its own, intent: i, now: "2026-11-01T23:00:00Z", want: allow}
  - {name: its own in a row, intent: i, table: {columns: [now, want, rule], rows: [["2026-11-05T22:59:59Z", allow, null], ["2026-11-05T23:00:00Z", deny, rego]]}}
  - {name: the suite's, intent: i, want: allow}
`
	for now, wants := range map[string]string{"now: 2026-11-01T23:00:00Z": "allow", "": "deny"} {
		report := runText(t, strings.NewReplacer("NOW\n", now+"\n", "the suite's, intent: i, want: allow", "the suite's, intent: i, want: "+wants).Replace(text), Options{Rego: true})
		if len(report.Results) != 4 || len(report.NotCompared) > 0 {
			t.Errorf("%d results, %d are not compared, want 4 and none", len(report.Results), len(report.NotCompared))
		}
		for _, r := range report.Results {
			if !r.Holds() {
				t.Errorf("%q: %s: %s", now, r.ID(), &r)
			}
		}
	}
}
