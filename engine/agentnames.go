package engine

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
	switch {
	case n.ExternalID != "":
		return FoldID(n.ExternalID)
	case n.ID != "":
		return FoldID(n.ID)
	}
	return FoldID(n.Sent)
}
