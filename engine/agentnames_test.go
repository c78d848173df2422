package engine

import "testing"

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
