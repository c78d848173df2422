package api

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// agentBody is the body of POST /v1/agents.
type agentBody struct {
	Name       string  `json:"name"`
	ExternalID *string `json:"externalId"`
}

// statusBody is the body of PATCH /v1/agents/{agentId}/status.
type statusBody struct {
	Status engine.AgentStatus `json:"status"`
}

// createAgent registers an agent. The new agent is active.
func (s *Server) createAgent(r *request, in *agentBody) error {
	a := &engine.Agent{
		ID: uuid.Must(uuid.NewV7()).String(), Name: in.Name, Status: engine.AgentActive,
		CreatedAt: r.stamp(), UpdatedAt: r.stamp(),
	}
	set(&a.ExternalID, in.ExternalID)
	plan, err := s.plan(r)
	if err != nil {
		return err
	}
	r.slot.Leave() // from here on the handler only waits for the store
	err = s.docs.PutAgent(r.ctx, r.who.org, a, plan.Agents)
	if errors.Is(err, storage.ErrConflict) && in.ExternalID != nil {
		return invalid("externalId", "is the id of another agent, or differs from one only in case, width or the like")
	}
	if err != nil {
		return fmt.Errorf("storing an agent: %w", err)
	}
	return r.created(a)
}

func checkNewAgent(_ *request, in *agentBody) error {
	var bad fieldErrors
	bad.name("name", in.Name)
	if in.ExternalID != nil {
		bad.optionalName("externalId", *in.ExternalID)
		if len(*in.ExternalID) > condition.MaxLabel {
			bad.add("externalId", fmt.Sprintf("is longer than %d bytes, which no intent can name", condition.MaxLabel))
		}
	}
	return bad.err()
}

func checkStatus(_ *request, in *statusBody) error {
	if in.Status != engine.AgentActive && in.Status != engine.AgentDisabled {
		return invalid("status", "must be %s or %s", engine.AgentActive, engine.AgentDisabled)
	}
	return nil
}

// setAgentStatus enables or disables an agent; this is the kill switch. The new status is in force
// before the answer is sent.
func (s *Server) setAgentStatus(r *request, in *statusBody) error {
	limit := 0
	if in.Status == engine.AgentActive { // disabling an agent is never limited
		if _, err := s.throttle.changes.Take(r.who.org, r.now); err != nil {
			return err
		}
		plan, err := s.plan(r)
		if err != nil {
			return err
		}
		limit = plan.Agents
	}
	a, err := s.docs.SetAgentStatus(r.ctx, r.who.org, r.param, in.Status, r.stamp(), limit)
	if err != nil {
		return about("agent", err)
	}
	return r.ok(a)
}
