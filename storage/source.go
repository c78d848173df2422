package storage

import (
	"context"
	"errors"

	"writ/engine"
)

// Source is a Store as [engine.Sets] loads from it.
type Source struct{ Store }

var _ engine.Source = Source{}

// AgentStatus implements [engine.Source].
func (s Source) AgentStatus(ctx context.Context, org, agentID string) (engine.AgentStatus, error) {
	a, err := s.Agent(ctx, org, agentID)
	if errors.Is(err, ErrNotFound) {
		return engine.AgentUnregistered, nil
	}
	if err != nil {
		return "", err
	}
	return a.Status, nil
}
