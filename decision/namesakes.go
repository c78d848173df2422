package decision

import (
	"slices"

	"writ/engine"
)

// agentBytes is about how many bytes the agents of one name take in the cache. It includes the
// key but not the agents' own names.
const agentBytes = 768

// namesakes are the agents of an organization that share one folded name.
type namesakes struct {
	// disabled says that one of the agents is disabled. Then the status of all is disabled.
	disabled bool
	// registered holds the names of all the agents, as they were registered.
	registered []string
	// revision is the greatest revision of the agents.
	revision int64
}

func newNamesakes(agents []*engine.Agent) namesakes {
	var n namesakes
	for _, a := range agents {
		n.revision = max(n.revision, a.Revision)
		n.disabled = n.disabled || a.Status != engine.AgentActive
		n.registered = append(n.registered, a.ID)
		if a.ExternalID != "" {
			n.registered = append(n.registered, a.ExternalID)
		}
	}
	return n
}

// status returns the status of the agent that an intent calls id. An agent counts as registered
// only if id is exactly one of its names.
func (n namesakes) status(id string) engine.AgentStatus {
	switch {
	case n.disabled:
		return engine.AgentDisabled
	case slices.Contains(n.registered, id):
		return engine.AgentActive
	}
	return engine.AgentUnregistered
}

// size returns about how many bytes n takes in the cache.
func (n namesakes) size() int64 {
	total := int64(agentBytes)
	for _, name := range n.registered {
		total += int64(len(name)) + 16
	}
	return total
}
