package storage

import (
	"context"
	"time"

	"writ/engine"
)

// Agents keeps an organization's governed agents.
type Agents interface {
	// PutAgent stores a new agent. It must return ErrConflict when its ID or its
	// ExternalID is another agent's ID or ExternalID in org, and a *LimitError
	// when org has maxAgents agents already (0: no limit).
	PutAgent(ctx context.Context, org string, a *engine.Agent, maxAgents int) error
	// SetAgentStatus works the kill switch of the agent whose ID or ExternalID
	// is agentID and returns the agent as it then is, or ErrNotFound.
	SetAgentStatus(ctx context.Context, org, agentID string, s engine.AgentStatus, at time.Time) (*engine.Agent, error)
	// Agent returns the agent whose ID or ExternalID is agentID, or ErrNotFound.
	Agent(ctx context.Context, org, agentID string) (*engine.Agent, error)
	// AgentsNamed returns every agent whose ID or ExternalID equals name once both
	// are folded (engine.FoldID), by id. It must also find those that were stored
	// before names were folded.
	AgentsNamed(ctx context.Context, org, name string) ([]*engine.Agent, error)
	// ListAgents returns org's agents by creation time, then id.
	ListAgents(ctx context.Context, org string, p Page) (agents []*engine.Agent, next string, err error)
}
