package storage

import (
	"context"
	"time"

	"writ/engine"
)

// AgentCount is how many agents an organization has.
type AgentCount struct {
	Total    int64
	Disabled int64 // of Total
}

// disabledFree is how many disabled agents a plan has room for, for each agent
// that it allows: room for a switch, not for a store of anything.
const disabledFree = 10

// Counted returns how many agents count towards a plan's limit: those that are
// not disabled, and the disabled ones beyond ten times the limit.
func (c AgentCount) Counted(maxAgents int) int64 {
	return c.Total - min(c.Disabled, disabledFree*int64(maxAgents))
}

// Agents keeps an organization's governed agents.
type Agents interface {
	// PutAgent stores a new agent. It must return ErrConflict when its ID or its
	// ExternalID equals another agent's ID or ExternalID in org once both are
	// folded (engine.FoldID), and a *LimitError when more agents of org would count
	// than maxAgents (0: no limit): see [AgentCount]. Agents that were stored before
	// names were folded may be equal; they stay and work.
	PutAgent(ctx context.Context, org string, a *engine.Agent, maxAgents int) error
	// SetAgentStatus works the kill switch of the agent whose ID or ExternalID
	// is agentID and returns the agent as it then is, or ErrNotFound. It must
	// return a *LimitError when an agent is enabled and more agents of org would
	// count than maxAgents (0: no limit); disabling one must never meet a limit.
	SetAgentStatus(ctx context.Context, org, agentID string, s engine.AgentStatus, at time.Time, maxAgents int) (*engine.Agent, error)
	// Agent returns the agent whose ID or ExternalID is agentID, or ErrNotFound.
	Agent(ctx context.Context, org, agentID string) (*engine.Agent, error)
	// AgentsNamed returns every agent whose ID or ExternalID equals name once both
	// are folded (engine.FoldID), by id. It must also find those that were stored
	// before names were folded.
	AgentsNamed(ctx context.Context, org, name string) ([]*engine.Agent, error)
	// ListAgents returns org's agents by creation time, then id.
	ListAgents(ctx context.Context, org string, p Page) (agents []*engine.Agent, next string, err error)
}
