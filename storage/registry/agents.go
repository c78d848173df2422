package registry

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// PutAgent stores a new agent. It returns storage.ErrConflict if the new agent's ID or ExternalID
// equals the ID or ExternalID of another agent of org. Both sides are folded by engine.FoldID. It
// returns a *storage.LimitError if more than maxAgents agents of org would count: see
// [AgentCount]. 0 means no limit.
func (r *Registry) PutAgent(ctx context.Context, org string, a *engine.Agent, maxAgents int) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		names := []string{a.ID, a.ExternalID}
		if a.ExternalID == "" {
			names = names[:1]
		}
		for _, name := range names {
			if named, err := agentsNamed(tx, org, name); err != nil || len(named) > 0 {
				return cmp.Or(err, storage.ErrConflict)
			}
		}
		if err := storage.Agents.Put(tx, org, a); err != nil {
			return err
		}
		return countAgent(tx, org, AgentCount{Total: 1, Disabled: disabled(a.Status)}, maxAgents)
	})
}

// SetAgentStatus sets the kill switch of the agent whose ID or ExternalID is agentID. It returns
// the agent, or storage.ErrNotFound. If it would enable the agent, and more than maxAgents agents
// of org would then count, it returns a *storage.LimitError. 0 means no limit. An agent can
// always be disabled. When SetAgentStatus returns nil, every replica uses the new status. If the
// agent already has the status, nothing is written.
func (r *Registry) SetAgentStatus(
	ctx context.Context, org, agentID string, status engine.AgentStatus, at time.Time, maxAgents int,
) (a *engine.Agent, err error) {
	a, err = change(storage.WithUrgency(ctx), r, org, func(tx storage.Tx) (*engine.Agent, error) {
		a, err := agent(tx, org, agentID)
		if err != nil || a.Status == status {
			return a, err
		}
		more := disabled(status) - disabled(a.Status)
		before := a.Revision
		a.Status, a.UpdatedAt = status, at
		err = storage.Agents.Put(tx, org, a)
		if err == nil && status == engine.AgentDisabled {
			err = Tell(tx, org, at, agentDisabled(a, before))
		}
		if err != nil {
			return nil, err
		}
		return a, countAgent(tx, org, AgentCount{Disabled: more}, maxAgents)
	})
	if err != nil {
		return nil, err
	}
	if err := r.switched(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// agentDisabled returns the event that a was disabled. after is the revision that a had before.
// It identifies the event.
func agentDisabled(a *engine.Agent, after int64) storage.Event {
	data := map[string]any{"agent_id": a.ID, "name": a.Name}
	if a.ExternalID != "" {
		data["external_id"] = a.ExternalID
	}
	return storage.Event{
		Type: storage.AgentDisabled, Subject: "agent/" + a.ID, Fact: strconv.FormatInt(after, 10), At: a.UpdatedAt,
		Data: data,
	}
}

// disabled returns 1 if status is disabled, and 0 otherwise.
func disabled(status engine.AgentStatus) int64 {
	if status == engine.AgentDisabled {
		return 1
	}
	return 0
}

// countAgent adds change to org's counts of agents, or returns a *storage.LimitError.
func countAgent(tx storage.Tx, org string, change AgentCount, maxAgents int) error {
	return recount(tx, org, func(c *storage.Counts) error {
		c.Agents += change.Total
		c.Disabled += change.Disabled
		added := change.Total > 0 || change.Disabled < 0
		if n := (AgentCount{c.Agents, c.Disabled}); added && maxAgents > 0 && n.Counted(maxAgents) > int64(maxAgents) {
			return &storage.LimitError{What: "agents", Limit: maxAgents}
		}
		return nil
	})
}

// Agent returns the agent of org whose ID or ExternalID is agentID, or storage.ErrNotFound.
func (r *Registry) Agent(ctx context.Context, org, agentID string) (*engine.Agent, error) {
	return read(ctx, r, func(tx storage.Reader) (*engine.Agent, error) { return agent(tx, org, agentID) })
}

func agent(tx storage.Reader, org, agentID string) (*engine.Agent, error) {
	a, err := storage.Agents.Get(tx, org, agentID)
	if !errors.Is(err, storage.ErrNotFound) {
		return a, err
	}
	return first(tx, storage.Agents, storage.Query{Org: org, Index: storage.ByAlias, Prefix: storage.Text(agentID)})
}

// AgentsNamed returns the agents whose ID or ExternalID equals name when both are folded by
// engine.FoldID. The agents are in the order of their ids.
func (r *Registry) AgentsNamed(ctx context.Context, org, name string) ([]*engine.Agent, error) {
	return read(ctx, r, func(tx storage.Reader) ([]*engine.Agent, error) { return agentsNamed(tx, org, name) })
}

func agentsNamed(tx storage.Reader, org, name string) ([]*engine.Agent, error) {
	return every(tx, storage.Agents,
		storage.Query{Org: org, Index: storage.ByName, Prefix: storage.Text(engine.FoldID(name))})
}

// ListAgents returns org's agents in the order of their creation times, then ids.
func (r *Registry) ListAgents(
	ctx context.Context, org string, p storage.Page,
) (agents []*engine.Agent, next string, err error) {
	return list(ctx, r, storage.Agents, org, storage.ByAge, p, all)
}
