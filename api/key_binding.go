package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// A key can be bound to agents. Such a key evaluates, records and reads for its agents and does
// nothing for the whole organization. boundScopes are all that it can hold.
//
// A binding compares ids exactly, whereas the kill switch folds case. Folding here would let a key
// act for agents for which it was not made. Rows of the history have an agent's key, so a bound key
// reads what any name of its agent has done.

// boundScopes are the scopes that a bound key can hold. A key that was minted before with others
// is refused where a route demands one of those.
const boundScopes = scopeEvaluate | scopePolicyRead | scopeActionsRecord | scopeFactsAssert | scopeHistoryRead |
	scopeApprovalsRead | scopeSessionsWrite

// tooWide refuses a bound key what is about the whole organization.
func (a *auth) tooWide(who *principal) error {
	a.failures.count(failedAgent)
	return refuse(codeAgentNotBound, "The key is bound to the agents "+condition.Quote(who.agents.String())+
		", and this is about the whole organization: use a key without agent_id.")
}

// actFor refuses a bound key that would act for an agent outside its binding. names are the names
// of one agent. One matching name is enough.
func (a *auth) actFor(who *principal, names ...string) error {
	if who.agents == nil || slices.ContainsFunc(names, who.agents.Matches) {
		return nil
	}
	return a.notBound(who)
}

func (a *auth) notBound(who *principal) error {
	a.failures.count(failedAgent)
	return refuse(codeAgentNotBound, "The key is bound to the agents "+condition.Quote(who.agents.String())+".")
}

// rowsOf is the part of the history that a credential may read. A nil rowsOf is the whole history.
type rowsOf struct {
	credential string
	agents     *engine.AgentPattern
	// spellings has all names that rows may have for the agent, if agents is an id.
	spellings []string
}

// rows returns the part of the history that the credential of r may read.
func (s *Server) rows(r *request) (*rowsOf, error) {
	if r.who.agents == nil {
		return nil, nil //nolint:nilnil // nil is the whole history
	}
	of := &rowsOf{credential: r.who.credential(), agents: r.who.agents}
	if !of.agents.IsID() {
		of.agents = of.agents.Folded()
		return of, nil
	}
	var err error
	of.spellings, err = s.agentSpellings(r, of.agents.String())
	return of, err
}

// has reports whether a row is in o: the credential asked for the decision, or the decision is about
// one of its agents. The row may hide the id of its agent, and a glob does not match a hidden id.
func (o *rowsOf) has(row *storage.Record) bool {
	return o == nil || row.Credential == o.credential || slices.Contains(o.spellings, row.AgentID) ||
		o.agents.Matches(row.AgentID)
}

// narrow changes a filter for an id so that it selects little else than what o has.
func (o *rowsOf) narrow(f *storage.Filter) {
	if o != nil && len(o.spellings) > 0 && len(f.AgentIDs) == 0 {
		f.AgentIDs = o.spellings
	}
}

// mayRead refuses a bound key whose rows do not have row.
func (s *Server) mayRead(r *request, row *storage.Record) error {
	of, err := s.rows(r)
	if err == nil && !of.has(row) {
		err = s.auth.notBound(&r.who)
	}
	return err
}

// checkDecision refuses a bound key unless the key asked for the decision or the decision is about
// one of its agents.
func (s *Server) checkDecision(r *request, decisionID string) error {
	if r.who.agents == nil {
		return nil
	}
	record, err := s.store.Record(r.ctx, r.who.org, decisionID)
	if err != nil {
		return about("decision", err)
	}
	return s.mayRead(r, record)
}

// governs reports whether a policy is about agents of p: its agent_id covers them, or they cover it.
func (p *principal) governs(policy *engine.ActionPolicy) bool {
	if p.agents == nil || p.agents.Covers(policy.AgentID) {
		return true
	}
	of, err := engine.CompileAgentPattern("agent_id", policy.AgentID)
	return err == nil && of.Covers(p.agents.String())
}

// checkPolicy refuses a bound key if a stored policy is not about its agents.
func (s *Server) checkPolicy(r *request, policy *engine.ActionPolicy) error {
	if !r.who.governs(policy) {
		return s.auth.notBound(&r.who)
	}
	return nil
}

// bind sets the policy and the agents of t. Only keys that are not bound make keys.
func (s *Server) bind(r *request, in *tokenBody, t *storage.Token) error {
	t.PolicyID = r.who.policy
	if in.PolicyID != nil {
		if err := s.checkPolicyID(r, strings.ToLower(*in.PolicyID)); err != nil {
			return err
		}
		t.PolicyID = strings.ToLower(*in.PolicyID)
	}
	set(&t.AgentID, in.AgentID)
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
