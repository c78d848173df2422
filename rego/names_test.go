package rego

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// TestDecision_Rules_AnAgentIsOne checks "An agent is one": a rule that denies or asks and is about
// ext-9 holds under every name of that agent, a rule that allows only for the text as sent. It holds
// in all forms, in the engine and in the lowered policy.
func TestDecision_Rules_AnAgentIsOne(t *testing.T) {
	const id, external = "0193f4a0-0000-7000-8000-00000000000a", "ext-9"
	sent := []string{external, id, "EXT-9", "ｅｘｔ-9", "0193F4A0-0000-7000-8000-00000000000A"}
	about := []string{
		`{"agent_id": "ext-9"}`,
		`{"agent_id": "EXT-9"}`,
		`{"agent_id": {"$in": ["a", "ext-9"]}}`,
		`{"agent_id": {"$in": {"list": "named"}}}`,
		`{"agent_id": {"$glob": "ext-*"}}`,
		`{"agent_id": {"$glob": "EXT-*"}}`,
		`{"agent_id": {"$regex": "^EXT-[0-9]$"}}`,
		`{"$not": {"agent_id": {"$ne": "ext-9"}}}`,
		`{"field": "agent.id", "op": "eq", "value": "ext-9"}`,
		`{"field": "agent_id", "op": "startsWith", "value": "EXT"}`,
		`{"not": {"field": "agent_id", "op": "notIn", "value": ["ext-9"]}}`,
		`{"cel": "intent.agent_id == 'ext-9'"}`,
		`{"cel": "agent.id == 'ext-9' && intent.resource.startsWith('a')"}`,
		`{"cel": "intent.agent_id in list('plain')"}`,
		`{"rego": "input.intent.agent_id == \"ext-9\""}`,
		`{"rego": "input.agent.id in input.lists.plain; startswith(input.intent.resource, \"a\")"}`,
	}
	lists := condition.Lists{"named": condition.NewList([]string{"Ext-9"}), "plain": condition.NewList([]string{"ext-9"})}
	for _, cond := range about {
		for _, outcome := range []engine.Decision{engine.Deny, engine.ApprovalRequired, engine.Allow} {
			for _, agent := range sent {
				want := outcome == engine.Allow && plainly(cond, agent)
				testNamed(t, lists, cond, outcome, engine.AgentNames{Sent: agent, ID: id, ExternalID: external}, outcome != engine.Allow || want)
			}
			testNamed(t, lists, cond, outcome, engine.AgentNames{Sent: "other", ID: "other"}, false)
		}
	}
	// A denial of all but an agent looks at the name that was sent in a tree, and at every name in CEL.
	for cond, want := range map[string]bool{
		`{"agent_id": {"$ne": "ext-9"}}`: false, `{"agent_id": {"$nin": ["ext-9"]}}`: false,
		`{"cel": "intent.agent_id != 'ext-9'"}`: true, `{"rego": "input.intent.agent_id != \"ext-9\""}`: true,
	} {
		testNamed(t, lists, cond, engine.Deny, engine.AgentNames{Sent: external, ID: id, ExternalID: external}, want)
		testNamed(t, lists, cond, engine.Deny, engine.AgentNames{Sent: id, ID: id, ExternalID: external}, true)
		testNamed(t, lists, cond, engine.Deny, engine.AgentNames{Sent: external}, false)
	}
}

// plainly reports whether cond holds for the text of agent alone.
func plainly(cond, agent string) bool {
	switch cond {
	case `{"agent_id": "EXT-9"}`, `{"agent_id": {"$glob": "EXT-*"}}`, `{"agent_id": {"$regex": "^EXT-[0-9]$"}}`,
		`{"field": "agent_id", "op": "startsWith", "value": "EXT"}`:
		return agent == "EXT-9"
	case `{"agent_id": {"$in": {"list": "named"}}}`:
		return false
	}
	return agent == "ext-9"
}

func testNamed(t *testing.T, lists condition.Lists, cond string, outcome engine.Decision, names engine.AgentNames, want bool) {
	t.Helper()
	p := &engine.ActionPolicy{PolicyID: policyID, Version: 1, OrganizationID: "acme", AgentID: "*", Status: engine.StatusActive,
		AllowedActionTypes: []string{"*"}, UpdatedAt: time.Unix(0, 0).UTC()}
	rules := []engine.Rule{{ID: "r", Name: "r", Condition: cond, Action: fmt.Sprintf(`{"decision":%q}`, outcome), IsActive: true}}
	policy, err := engine.CompilePolicy(p)
	if err != nil {
		t.Fatal(err)
	}
	set := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition, Lists: lists})
	for _, broken := range set.Broken() {
		t.Fatal(broken)
	}
	in := &engine.Input{Names: names, Intent: &engine.Intent{IntentID: "5d1f7ab2-6bd0-4c4a-8f3e-6f6dd0f9b7aa", PolicyID: policyID,
		AgentID: names.Sent, ActionType: "read", Resource: "a", IssuedAt: "2026-01-31T12:00:00Z"}}
	result := engine.Evaluate(policy, set, in)
	ruled := result.Findings[len(result.Findings)-1].Code == engine.Code("rule."+outcome.String())
	if ruled != want {
		t.Errorf("%v rule %s: Evaluate(%+v) = %v, want a match %v", outcome, cond, names, result.Reasons(), want)
	}
	query, err := Prepare(p, rules, lists)
	if err != nil {
		t.Fatal(err)
	}
	decision, _, err := query.Evaluate(in)
	if err != nil || decision != result.Decision {
		t.Errorf("%v rule %s: Query.Evaluate(%+v) = %v, %v, want %v", outcome, cond, names, decision, err, result.Decision)
	}
}

// TestLower_AgentNames checks that an input without the names of the agent is refused by a module
// that compares them.
func TestLower_AgentNames(t *testing.T) {
	for _, cond := range []string{`{"agent_id": "ext-9"}`, `{"cel": "intent.agent_id == 'ext-9'"}`, `{"rego": "input.agent.id == \"ext-9\""}`} {
		rules := []engine.Rule{{ID: "r", Name: "r", Condition: cond, Action: `{"decision":"deny"}`, IsActive: true}}
		p := &engine.ActionPolicy{PolicyID: policyID, Version: 1, OrganizationID: "acme", AgentID: "*", Status: engine.StatusActive,
			AllowedActionTypes: []string{"*"}}
		q, err := Prepare(p, rules, nil)
		if err != nil {
			t.Fatal(err)
		}
		in := &engine.Input{Intent: &engine.Intent{IntentID: "5d1f7ab2-6bd0-4c4a-8f3e-6f6dd0f9b7aa", PolicyID: policyID,
			AgentID: "b", ActionType: "read", Resource: "a", IssuedAt: "2026-01-31T12:00:00Z"}}
		doc, err := Input(p, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{`{"id":"b","status":"active"}`, `{"id":"b","status":"active","called":[],"names":[]}`,
			`{"id":"b","status":"active","called":["c"],"names":["c"]}`, `{"id":"b","status":"active","called":["b"],"names":[]}`} {
			if got := codesFor(t, q, doc, agent); got != `{"check.error"}` {
				t.Errorf("%s, agent %s: codes = %s, want check.error", cond, agent, got)
			}
		}
		if got := codesFor(t, q, doc, ""); got != `{"policy.allowed"}` {
			t.Errorf("%s: codes = %s", cond, got)
		}
	}
}

func codesFor(t *testing.T, q *Query, doc fmt.Stringer, agent string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(doc.String()), &members); err != nil {
		t.Fatal(err)
	}
	if agent != "" {
		members["agent"] = json.RawMessage(agent)
	}
	term, err := ast.ParseTerm(marshal(members))
	if err != nil {
		t.Fatal(err)
	}
	got, err := q.codes.ask(term.Value, inTime(time.Now, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return got.String()
}
