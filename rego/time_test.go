package rego

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// TestDecision_DecidedAt: "decided_at is … RFC 3339 text … in Rego (input.decided_at)". Days and hours
// in a zone are the same in CEL and in Rego.
func TestDecision_DecidedAt(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 4))
	days := []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland", "UTC"} {
		for range 40 {
			at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(20*365*24*3600_000)) * time.Millisecond)
			local := at.In(must.Get(time.LoadLocation(zone))(t))
			day, hour := int(local.Weekday()), local.Hour()
			const ns = "time.parse_rfc3339_ns(input.decided_at)"
			for doc, want := range map[string]engine.Decision{
				fmt.Sprintf(`{"cel":"decided_at.getDayOfWeek('%[1]s') == %[2]d && decided_at.getHours('%[1]s') == %[3]d"}`, zone, day, hour):                                engine.Deny,
				fmt.Sprintf(`{"cel":"decided_at.getDayOfWeek('%[1]s') != %[2]d || decided_at.getHours('%[1]s') != %[3]d"}`, zone, day, hour):                                engine.Allow,
				`{"rego":` + condition.Quote(fmt.Sprintf(`time.weekday([%[1]s, %[2]q]) == %[3]q; time.clock([%[1]s, %[2]q])[0] == %[4]d`, ns, zone, days[day], hour)) + `}`: engine.Deny,
				`{"rego":` + condition.Quote(fmt.Sprintf(`time.weekday([%s, %q]) != %q`, ns, zone, days[day])) + `}`:                                                        engine.Allow,
				`{"rego":` + condition.Quote(fmt.Sprintf(`input.decided_at == %q`, at.Format(time.RFC3339Nano))) + `}`:                                                      engine.Deny,
				fmt.Sprintf(`{"field":"decided_at","op":"eq","value":%q}`, local.Format(time.RFC3339Nano)):                                                                  engine.Deny,
			} {
				rule := sampleRule("1", "1", doc, `{"decision":"deny"}`)
				got := engine.Evaluate(must.Get(engine.CompilePolicy(samplePolicy()))(t), engine.CompileRules([]engine.Rule{rule}, engine.Options{CompileRego: CompileCondition}),
					&engine.Input{Intent: evaluationInput().Intent, Agent: engine.AgentActive, DecidedAt: at})
				if got.Decision != want || got.ConditionErrors.Total() > 0 {
					t.Fatalf("%s at %v = %v, want %v", doc, at, got, want)
				}
			}
		}
	}
}

// TestDecision_DecidedAt_WithoutATimeNothingIsAllowed: a rule that reads the time denies if the input has
// no time.
func TestDecision_DecidedAt_WithoutATimeNothingIsAllowed(t *testing.T) {
	in := &engine.Input{Intent: evaluationInput().Intent, Agent: engine.AgentActive}
	for _, doc := range []string{
		`{"rego":"time.weekday(time.parse_rfc3339_ns(input.decided_at)) == \"Sunday\""}`, `{"decided_at":{"$gt":"2026-01-02T00:00:00Z"}}`,
	} {
		rules := []engine.Rule{sampleRule("1", "1", doc, `{"decision":"deny"}`)}
		got := engine.Evaluate(must.Get(engine.CompilePolicy(samplePolicy()))(t), engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition}), in)
		if got.Decision != engine.Deny || got.ConditionErrors.Total() != 1 {
			t.Errorf("%s = %v, want deny and an error", doc, got)
		}
		q := must.Get(Prepare(samplePolicy(), rules, nil))(t)
		if decision, _, err := q.Evaluate(in); err == nil && decision != engine.Deny {
			t.Errorf("%s: the prepared Rego decides %v", doc, decision)
		}
	}
}
