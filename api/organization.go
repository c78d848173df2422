package api

import (
	"fmt"
	"time"

	"writ.example/writ/storage"
)

// organizationStatus says whether an organization is stopped.
type organizationStatus string

const (
	organizationActive  organizationStatus = "active"
	organizationStopped organizationStatus = "stopped"
)

// organizationBody is the body of PATCH /v1/organization/status.
type organizationBody struct {
	Status organizationStatus `json:"status"`
}

// organizationState is the answer of /v1/organization/status. StoppedAt and StoppedBy are of the stop.
type organizationState struct {
	Status    organizationStatus `json:"status"`
	StoppedAt time.Time          `json:"stopped_at,omitzero"`
	StoppedBy string             `json:"stopped_by,omitzero"`
}

func stateOf(stop *storage.Stop) organizationState {
	if stop == nil {
		return organizationState{Status: organizationActive}
	}
	return organizationState{organizationStopped, stop.At, stop.By}
}

func (s *Server) organizationStatus(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	stop, err := s.docs.Stopped(r.ctx, r.who.org)
	if err != nil {
		return fmt.Errorf("reading whether the organization is stopped: %w", err)
	}
	return r.ok(stateOf(stop))
}

func checkOrganizationStatus(_ *request, in *organizationBody) error {
	if in.Status != organizationActive && in.Status != organizationStopped {
		return invalid("status", "must be %s or %s", organizationActive, organizationStopped)
	}
	return nil
}

// setOrganizationStatus stops the organization or resumes it. The new status is in force on every
// replica before the answer is sent.
func (s *Server) setOrganizationStatus(r *request, in *organizationBody) error {
	if in.Status == organizationStopped { // never limited
		stop, err := s.docs.Stop(r.ctx, r.who.org, r.stamp())
		if err != nil {
			return fmt.Errorf("stopping the organization: %w", err)
		}
		return r.ok(stateOf(stop))
	}
	if _, err := s.throttle.changes.Take(r.who.org, r.now); err != nil {
		return err
	}
	if err := s.docs.Resume(r.ctx, r.who.org, r.stamp()); err != nil {
		return fmt.Errorf("resuming the organization: %w", err)
	}
	return r.ok(stateOf(nil))
}
