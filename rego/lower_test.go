package rego

import (
	"fmt"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/format"

	"writ/engine"
)

func samplePolicy() *engine.ActionPolicy {
	limit := int64(250000)
	return &engine.ActionPolicy{
		PolicyID: "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", Version: 3, OrganizationID: "acme", AgentID: "team-a/*",
		AllowedActionTypes: []string{"deploy", "sql.*", "http_post"}, DeniedActionTypes: []string{"sql.drop"},
		AllowedResourcePatterns: []string{"prod/**", "https://api.example.com/**"}, BlockedResourcePatterns: []string{"prod/secrets/**"},
		MaxCostMinor: &limit, Currency: "EUR", Status: engine.StatusActive, UpdatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
	}
}

func sampleRule(id, name, condition, action string) engine.Rule {
	return engine.Rule{
		ID: id, Name: name, Condition: condition, Action: action, Priority: engine.DefaultPriority, IsActive: true,
		CreatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), UpdatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
	}
}

func sampleRules() []engine.Rule {
	return []engine.Rule{
		sampleRule("rule-1", "Costly deploys need a person", `{"action_type":"deploy","resource":"prod/**","cost.amount_minor":{"$gt":5000}}`, `{"decision":"approval_required"}`),
		sampleRule("rule-2", "No writes on Sundays", `{"rego":"time.weekday(time.parse_rfc3339_ns(input.intent.issued_at)) == \"Sunday\""}`, `{"decision":"deny","reason":"nobody is there to help"}`),
		sampleRule("rule-3", "Rehearsals", `{"cel":"intent.metadata.env == 'dr' || intent.resource.startsWith('prod/dr/')"}`, `{"decision":"allow"}`),
		sampleRule("rule-4", "The finance module", `{"rego":"package finance\n\n# who may\nteams := {\"a\", \"b\"}\n\nmatch if {\n\tsome team in data.finance.teams\n\tstartswith(input.agent.id, team)\n}"}`, `{"decision":"deny"}`),
	}
}

func TestLower_Golden(t *testing.T) {
	files, err := Lower(samplePolicy(), sampleRules())
	if err != nil {
		t.Fatal(err)
	}
	var all string
	for _, f := range files {
		all += fmt.Sprintf("-- %s --\n%s", f.Name, f.Source)
	}
	golden(t, "lowered.txtar", all)
}

func TestLower_IsCleanUnderFmt(t *testing.T) {
	files, err := Lower(samplePolicy(), sampleRules())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		out, err := format.Source(f.Name, []byte(f.Source))
		if err != nil || string(out) != f.Source {
			t.Errorf("opa fmt of %s = %v and\n%s\nwant\n%s", f.Name, err, out, f.Source)
		}
	}
}
