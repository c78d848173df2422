package engine

import (
	"testing"

	"writ.example/writ/engine/condition"
)

// TestAgentNames_Key checks "An agent is one" of decisions.md: all names of an agent have one key,
// and registering the agent does not change it.
func TestAgentNames_Key(t *testing.T) {
	const id, upper = "0193f4a0-0000-7000-8000-00000000000a", "0193F4A0-0000-7000-8000-00000000000A"
	for want, all := range map[string][]AgentNames{
		"e1": {
			{Sent: "e1"}, {Sent: "E1"}, {Sent: "ｅ1"}, {Sent: "e1", ID: id, ExternalID: "E1"},
			{Sent: id, ID: id, ExternalID: "e1"}, {Sent: upper, ID: id, ExternalID: "ｅ1"},
		},
		id: {{Sent: id}, {Sent: upper}, {Sent: upper, ID: id}},
		"": {{}},
	} {
		for _, names := range all {
			if got := names.Key(); got != want {
				t.Errorf("%+v.Key() = %q, want %q", names, got, want)
			}
		}
	}
}

// TestDecision_Rules_AnAgentIsOneWithTheIndex checks "An agent is one": the index finds the rules about
// every name of the agent.
func TestDecision_Rules_AnAgentIsOneWithTheIndex(t *testing.T) {
	for _, cond := range []string{
		`{"agent_id": "ext-9"}`, `{"agent_id": "EXT-9"}`, `{"agent.id": {"$in": ["ext-9", "x"]}}`,
		`{"cel": "intent.agent_id == 'ext-9'"}`, `{"cel": "agent.id in ['ext-9']"}`,
	} {
		rs := CompileRules([]Rule{{ID: "r", Name: "r", Condition: cond, Action: `{"decision":"deny"}`, IsActive: true}}, Options{})
		for _, sent := range []string{"ext-9", "id-1", "ID-1", "EXT-9", "ｅｘｔ-9"} {
			intent := &Intent{AgentID: sent, ActionType: "read", Resource: "a", IssuedAt: "2026-01-31T12:00:00Z"}
			in := &Input{Intent: intent, Names: AgentNames{Sent: sent, ID: "id-1", ExternalID: "ext-9"}}
			for name, set := range map[string]*RuleSet{"indexed": rs, "plain": withoutIndex(rs)} {
				e := testEvaluation(t, intent)
				e.SetNames(in.ConditionNames())
				found, errs := set.decide(e)
				if len(found) != 1 || errs.Total() > 0 {
					t.Errorf("%s, %s: decide(%s) = %v, %v, want a deny", cond, name, sent, found, errs)
				}
				if got, _ := e.Text(condition.AgentID); got != sent {
					t.Errorf("%s, %s: decide left the agent %s, want %s", cond, name, got, sent)
				}
			}
		}
	}
}
