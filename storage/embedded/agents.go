package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/engine"
	"writ/storage"
)

func agentKey(org, id string) key              { return orgKey(kindAgent, org).text(id) }
func externalIDKey(org, externalID string) key { return orgKey(kindExternalID, org).text(externalID) }

// PutAgent implements storage.Agents.
func (s *Store) PutAgent(ctx context.Context, org string, a *engine.Agent, maxAgents int) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	_, err := s.write(ctx, org, func(b *batch) (storage.Change, error) {
		c := agentChange(org, a)
		if err := s.agentFree(ctx, org, a.ID); err != nil {
			return c, err
		}
		if a.ExternalID != "" {
			if err := s.agentFree(ctx, org, a.ExternalID); err != nil {
				return c, err
			}
			b.set(externalIDKey(org, a.ExternalID), []byte(a.ID))
		}
		b.document(agentKey(org, a.ID), a)
		b.set(orgKey(kindAgentOrder, org).time(a.CreatedAt).text(a.ID), nil)
		b.indexAgent(org, a)
		return c, s.countMore(b, kindAgent, org, 1, "agents", maxAgents)
	})
	return err
}

// indexAgent adds what finds a by its folded names.
func (b *batch) indexAgent(org string, a *engine.Agent) {
	for _, name := range []string{a.ID, a.ExternalID} {
		if name != "" {
			b.set(orgKey(kindAgentName, org).escaped(engine.FoldID(name)).text(a.ID), nil)
		}
	}
}

func agentChange(org string, a *engine.Agent) storage.Change {
	return storage.Change{Kind: storage.AgentChanged, OrganizationID: org, ID: a.ID, ExternalID: a.ExternalID}
}

// agentFree returns storage.ErrConflict when an agent of org goes by name.
func (s *Store) agentFree(ctx context.Context, org, name string) error {
	_, err := s.Agent(ctx, org, name)
	if err == nil {
		return storage.ErrConflict
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// SetAgentStatus implements storage.Agents.
func (s *Store) SetAgentStatus(
	ctx context.Context, org, agentID string, status engine.AgentStatus, at time.Time,
) (a *engine.Agent, err error) {
	s.writes.Lock()
	defer s.writes.Unlock()
	_, err = s.write(ctx, org, func(b *batch) (storage.Change, error) {
		a, err = s.Agent(ctx, org, agentID)
		if err != nil {
			return storage.Change{}, err
		}
		a.Status, a.UpdatedAt = status, at
		b.document(agentKey(org, a.ID), a)
		return agentChange(org, a), nil
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Agent implements storage.Agents.
func (s *Store) Agent(_ context.Context, org, agentID string) (*engine.Agent, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	a, err := document[engine.Agent](s, agentKey(org, agentID))
	if !errors.Is(err, storage.ErrNotFound) {
		return a, err
	}
	id, err := s.get(externalIDKey(org, agentID))
	if err != nil {
		return nil, err
	}
	return document[engine.Agent](s, agentKey(org, string(id)))
}

// AgentsNamed implements storage.Agents.
func (s *Store) AgentsNamed(ctx context.Context, org, name string) ([]*engine.Agent, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	var agents []*engine.Agent
	named := orgKey(kindAgentName, org).escaped(engine.FoldID(name))
	err := s.scan(ctx, named, named.end(), func(k, _ []byte) (bool, error) {
		id := string(k[len(named):])
		a, err := document[engine.Agent](s, agentKey(org, id))
		if errors.Is(err, storage.ErrNotFound) {
			return false, fmt.Errorf("the agent %s is indexed but not stored", id)
		}
		agents = append(agents, a)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	return agents, nil
}

// ListAgents implements storage.Agents.
func (s *Store) ListAgents(ctx context.Context, org string, p storage.Page) ([]*engine.Agent, string, error) {
	return list(ctx, s, kindAgentOrder, org, p, timeLen, func(position, _ []byte) (*engine.Agent, error) {
		return document[engine.Agent](s, agentKey(org, string(position[timeLen:])))
	})
}
