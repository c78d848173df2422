package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"writ/engine"
	"writ/engine/condition"
	"writ/storage"
)

// A key can be bound to agents. Such a key evaluates and records settlements only for its agents.
// It registers and switches only these agents, and writes only their policies. It makes, sees and
// revokes only keys that are bound at least as tightly. The binding does not limit the reads that
// the key's scopes allow.
//
// A binding compares ids exactly, whereas the kill switch folds case. Folding here would let a key
// act for agents for which it was not made.

// actFor refuses a bound key that would act for an agent outside its binding. names are the names
// of one agent. One matching name is enough.
func (a *auth) actFor(who *principal, names ...string) error {
	if who.agents == nil || slices.ContainsFunc(names, who.agents.Matches) {
		return nil
	}
	return a.notBound(who)
}

// within refuses a bound key that would write a document about agents outside its binding. pattern
// selects the agents of the document.
func (a *auth) within(who *principal, pattern string) error {
	if who.agents == nil || who.agents.Covers(pattern) {
		return nil
	}
	return a.notBound(who)
}

func (a *auth) notBound(who *principal) error {
	a.failures.count(failedAgent)
	return refuse(codeAgentNotBound, "The key is bound to the agents "+condition.Quote(who.agents.String())+".")
}

// checkBound refuses a bound key if p, or the version that p replaces, governs agents outside the
// key's binding.
func (s *Server) checkBound(r *request, p *engine.ActionPolicy) error {
	if r.who.agents == nil {
		return nil
	}
	if err := s.auth.within(&r.who, p.AgentID); err != nil {
		return err
	}
	newest, err := s.docs.Policy(r.ctx, r.who.org, p.PolicyID)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the newest version: %w", err)
	}
	return s.auth.within(&r.who, newest.AgentID)
}

// checkDecision refuses a bound key unless the key asked for the decision or the decision is about
// an agent of the key. A row may store a tag instead of the agent's id. A binding to an id is
// therefore compared with every form of the id. A binding to a glob does not match a tag.
func (s *Server) checkDecision(r *request, decisionID string) error {
	if r.who.agents == nil {
		return nil
	}
	record, err := s.store.Record(r.ctx, r.who.org, decisionID)
	switch {
	case err != nil:
		return about("decision", err)
	case record.Credential == r.who.credential():
		return nil
	case r.who.agents.IsID() && slices.Contains(s.cfg.Scrub.Spellings(r.who.agents.String()), record.AgentID):
		return nil
	}
	return s.auth.actFor(&r.who, record.AgentID)
}

// checkAgent refuses a bound key whose binding does not cover the agent called name.
func (s *Server) checkAgent(r *request, name string) error {
	if r.who.agents == nil {
		return nil
	}
	a, err := s.docs.Agent(r.ctx, r.who.org, name)
	if err != nil {
		return about("agent", err)
	}
	return s.auth.actFor(&r.who, a.ID, a.ExternalID)
}

// checkToken refuses a bound key if the token tokenID is bound less tightly than the key.
func (s *Server) checkToken(r *request, tokenID string) error {
	if r.who.agents == nil {
		return nil
	}
	t, err := s.docs.Token(r.ctx, tokenID)
	if err == nil && t.OrganizationID != r.who.org {
		err = storage.ErrNotFound
	}
	if err != nil {
		return about("token", err)
	}
	if !r.who.covers(t) {
		return s.auth.notBound(&r.who)
	}
	return nil
}

// covers reports whether t is bound at least as tightly as p.
func (p *principal) covers(t *storage.Token) bool {
	return p.agents == nil || t.AgentID != "" && p.agents.Covers(t.AgentID)
}

// bind sets the agents and the policy of t from in. A member that in omits is taken from the key
// that makes the token.
func (s *Server) bind(r *request, in *tokenBody, t *storage.Token) error {
	if r.who.agents != nil {
		t.AgentID = r.who.agents.String()
	}
	t.PolicyID = r.who.policy
	if in.PolicyID != nil {
		if err := s.checkPolicyID(r, strings.ToLower(*in.PolicyID)); err != nil {
			return err
		}
		t.PolicyID = strings.ToLower(*in.PolicyID)
	}
	if in.AgentID != nil {
		t.AgentID = *in.AgentID
		return s.auth.within(&r.who, t.AgentID)
	}
	return nil
}

// checkPolicyID refuses a policy that does not exist. A key with a policy can make tokens only for
// that policy.
func (s *Server) checkPolicyID(r *request, policyID string) error {
	if r.who.policy != "" && policyID != r.who.policy {
		return invalid("policy_id", "must be %s, the policy of the key that makes it", r.who.policy)
	}
	_, err := s.docs.Policy(r.ctx, r.who.org, policyID)
	if errors.Is(err, storage.ErrNotFound) {
		return invalid("policy_id", "is no policy of your organization: register it first")
	}
	if err != nil {
		return fmt.Errorf("looking up the policy of a token: %w", err)
	}
	return nil
}
