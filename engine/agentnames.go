package engine

import (
	"cmp"

	"writ.example/writ/engine/condition"
)

// AgentNames has the names of the agent that an intent names. ID and ExternalID are empty if the
// agent is not registered, or has no such name.
type AgentNames struct {
	// Sent is the name in the intent.
	Sent string
	// ID and ExternalID are the names under which the agent is registered.
	ID, ExternalID string
}

// Key returns the one name under which the agent is counted and kept in the history: its folded
// external id, else its folded id, else the folded name of the intent. All names of an agent have
// the same key. Registering an agent by the name that it already uses does not change the key.
func (n AgentNames) Key() string {
	return FoldID(cmp.Or(n.ExternalID, n.ID, n.Sent))
}

// Keyed returns the name whose folded form is the key. If the name in the intent has this form, Keyed
// returns it as the intent spells it.
func (n AgentNames) Keyed() string {
	name := cmp.Or(n.ExternalID, n.ID, n.Sent)
	if n.Sent != name && FoldID(n.Sent) == FoldID(name) {
		return n.Sent
	}
	return name
}

// Has reports whether name is one of the agent's names, ignoring case as [FoldID] does.
func (n AgentNames) Has(name string) bool {
	name = FoldID(name)
	return name != "" && (name == FoldID(n.Sent) || name == FoldID(n.ID) || name == FoldID(n.ExternalID))
}

// Of returns n, or the names of an agent that has only the name in the intent if n is zero.
func (n AgentNames) Of(in *Intent) AgentNames {
	if n == (AgentNames{}) {
		return AgentNames{Sent: in.AgentID}
	}
	return n
}

// FoldID is [condition.FoldID].
func FoldID(id string) string { return condition.FoldID(id) }

// ConditionNames returns the agent's names as conditions read them.
func (in *Input) ConditionNames() condition.Names {
	return condition.NamesOf(in.Intent.AgentID, in.Names.ID, in.Names.ExternalID)
}
