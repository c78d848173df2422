package decision

import (
	"slices"
	"unsafe"

	"writ.example/writ/engine"
)

// agentBytes is about how many bytes the agents of one name take in the cache. It includes the
// key but not the agents' own names.
const agentBytes = 768

// namesakes are the agents of an organization that share one folded name.
type namesakes struct {
	// disabled says that one of the agents is disabled. Then the status of all is disabled.
	disabled bool
	// registered holds the names of each agent, in the order of the agents' ids.
	registered []engine.AgentNames
	// revision is the greatest revision of the agents.
	revision int64
}

func newNamesakes(agents []*engine.Agent) namesakes {
	var n namesakes
	for _, a := range agents {
		n.revision = max(n.revision, a.Revision)
		n.disabled = n.disabled || a.Status != engine.AgentActive
		n.registered = append(n.registered, engine.AgentNames{ID: a.ID, ExternalID: a.ExternalID})
	}
	return n
}

// status returns the status of the agent that an intent calls id. An agent counts as registered
// only if id is exactly one of its names.
func (n namesakes) status(id string) engine.AgentStatus {
	switch {
	case n.disabled:
		return engine.AgentDisabled
	case slices.ContainsFunc(n.registered, func(a engine.AgentNames) bool { return id == a.ID || id == a.ExternalID }):
		return engine.AgentActive
	}
	return engine.AgentUnregistered
}

// names returns the names of the agent that an intent calls id. Several agents can share a folded
// name in a store that is older than the check at their registration. They are counted as one: the
// agent with the lowest id.
func (n namesakes) names(id string) engine.AgentNames {
	var names engine.AgentNames
	if len(n.registered) > 0 {
		names = n.registered[0]
	}
	names.Sent = id
	return names
}

// size returns about how many bytes n takes in the cache.
func (n namesakes) size() int64 {
	total := int64(agentBytes)
	for _, a := range n.registered {
		total += int64(len(a.ID) + len(a.ExternalID) + int(unsafe.Sizeof(a)))
	}
	return total
}
