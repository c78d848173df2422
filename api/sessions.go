package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// sessionRequest is the body of POST /v1/sessions.
type sessionRequest struct {
	PolicyID                string   `json:"policy_id"`
	AgentID                 string   `json:"agent_id"`
	AllowedActionTypes      []string `json:"allowed_action_types"`
	AllowedResourcePatterns []string `json:"allowed_resource_patterns"`
	MaxCostMinor            *int64   `json:"max_cost_minor"`
	TTL                     int64    `json:"ttl"`

	session *engine.Session // the session that the body asks for; checkNewSession sets it
}

// closeBody is the body of PATCH /v1/sessions/{sessionId}.
type closeBody struct {
	Status engine.SessionStatus `json:"status"`
}

func (s *Server) createSession(r *request, in *sessionRequest) error {
	if err := s.auth.actFor(&r.who, in.session.AgentID); err != nil {
		return err
	}
	r.slot.Leave() // the rest only waits for the store
	err := s.docs.PutSession(r.ctx, r.who.org, in.session)
	switch full := (*storage.LimitError)(nil); {
	case errors.Is(err, storage.ErrNotFound):
		return about("policy", err)
	case errors.As(err, &full):
		return refuse(codePlanLimit, fmt.Sprintf(
			"There are %d sessions that have not been swept yet: let some expire, which are swept a day later.",
			full.Limit,
		))
	case err != nil:
		return fmt.Errorf("storing a session: %w", err)
	}
	return r.created(in.session)
}

func checkNewSession(r *request, in *sessionRequest) error {
	session := &engine.Session{
		ID: uuid.Must(uuid.NewV7()).String(), PolicyID: strings.ToLower(in.PolicyID), AgentID: in.AgentID,
		AllowedActionTypes: in.AllowedActionTypes, AllowedResourcePatterns: in.AllowedResourcePatterns,
		MaxCostMinor: in.MaxCostMinor,
		Status:       engine.SessionActive, CreatedAt: r.stamp(),
	}
	var bad fieldErrors
	bad.merge(session.Validate())
	if in.TTL < 1 || in.TTL > engine.MaxSessionSeconds {
		bad.add("ttl",
			fmt.Sprintf("is required: want how many seconds the session lasts, from 1 to %d", engine.MaxSessionSeconds))
	}
	session.ExpiresAt = session.CreatedAt.Add(time.Duration(in.TTL) * time.Second)
	in.session = session
	return bad.err()
}

// session reads a session by its id. The id may have any case.
func (s *Server) session(ctx context.Context, org, id string) (*engine.Session, error) {
	return s.docs.Session(ctx, org, strings.ToLower(id))
}

func checkClose(_ *request, in *closeBody) error {
	if in.Status != engine.SessionClosed {
		return invalid("status", "must be %s: a session is never opened again", engine.SessionClosed)
	}
	return nil
}

// closeSession closes a session. The session is closed on every replica before the answer is sent.
func (s *Server) closeSession(r *request, in *closeBody) error {
	if r.who.agents != nil {
		session, err := s.session(r.ctx, r.who.org, r.param)
		if err != nil {
			return about("session", err)
		}
		if err := s.auth.actFor(&r.who, session.AgentID); err != nil {
			return err
		}
	}
	session, err := s.docs.CloseSession(r.ctx, r.who.org, strings.ToLower(r.param), r.stamp())
	if err != nil {
		return about("session", err)
	}
	return r.ok(session)
}

// aboutDecision adds to an error of a decision the resource that the error is about.
func aboutDecision(err error) error {
	if err == nil { // errors.As allocates
		return nil
	}
	if missing := (*decision.SessionError)(nil); errors.As(err, &missing) {
		return about("session", missing.Err)
	}
	return about("policy", err)
}

// session returns the id of the session that a body names. It returns "" if the body names none. It refuses an empty
// id: the caller meant to narrow the request, and an empty id would widen it.
func (f *fieldErrors) session(id *string) string {
	if id == nil {
		return ""
	}
	f.uuid("session_id", *id)
	return strings.ToLower(*id)
}
