package decision

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

// Stood is what stood when a decision was made.
type Stood struct {
	engine.Set
	Session           engine.InSession
	RequireRegistered bool
	// Lacking names what is not known any more: "policy", "rules" or "session". Without the policy nothing
	// else is set.
	Lacking []string
}

// Stood returns what stood when the decision of a row was made: the version of the policy, the rules with
// their lists and libraries, the agent and the session. The row says whether the organization was
// stopped, the agent disabled and the session closed. The names of an agent and the narrowing of a
// session never change. in is the row's intent, and turn is the caller's turn, which may be nil.
func (s *Service) Stood(
	ctx context.Context, turn condition.Turn, r *storage.Record, in *engine.Intent,
) (Stood, error) {
	stood := Stood{RequireRegistered: s.cfg.RequireRegistered}
	stood.Stopped = r.Found(engine.CodeOrganizationStopped)
	policy, err := s.Documents.PolicyVersion(ctx, r.OrganizationID, r.PolicyID, r.PolicyVersion)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		stood.Lacking = []string{"policy"}
		return stood, nil
	case err != nil:
		return stood, fmt.Errorf("loading the policy of a decision: %w", err)
	}
	if stood.Policy, err = engine.CompileStored(policy); err != nil {
		return stood, fmt.Errorf("compiling the policy of a decision: %w", err)
	}
	origin, err := s.originOf(ctx, r)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		stood.Lacking = append(stood.Lacking, "rules")
	case err != nil:
		return stood, err
	default:
		at := registry.Then{Origin: origin, Revision: r.RulesRevision}
		if stood.Rules, err = s.rulesAt(ctx, turn, r.OrganizationID, at); err != nil {
			return stood, err
		}
	}
	if err := s.agentThen(ctx, turn, r, in, &stood); err != nil {
		return stood, err
	}
	return stood, s.sessionThen(ctx, r, &stood)
}

// originOf returns the [storage.Origin] of a row, which is empty if this store decided the row. The
// revisions in a row have a meaning only in the store that decided it. The error is storage.ErrNotFound if
// nothing was imported of that store's revisions.
func (s *Service) originOf(ctx context.Context, r *storage.Record) (origin string, err error) {
	chain, err := r.Receipt.Inclusion().Chain()
	if err != nil {
		return "", fmt.Errorf("reading the chain of a decision: %w", err)
	}
	own := false
	err = s.Store.Chains(ctx, func(tip receipt.Chain) error {
		own = own || tip.ID == chain
		return nil
	})
	if err == nil && !own {
		origin, err = s.Documents.OriginOf(ctx, r.OrganizationID, chain)
	}
	if err != nil {
		return "", fmt.Errorf("looking up the chain of a decision: %w", err)
	}
	return origin, nil
}

// rulesAt returns the rules that stood at a revision. It compiles only those that are not the current
// ones, and keeps none.
func (s *Service) rulesAt(
	ctx context.Context, turn condition.Turn, org string, at registry.Then,
) (*engine.RuleSet, error) {
	current, err := s.Sets.rules.GetFor(ctx, turn, org)
	if err != nil {
		return nil, err
	}
	if at.Origin == "" && current.revision == at.Revision {
		return current.RuleSet, nil
	}
	rules, libraries, err := s.Documents.RulesAt(ctx, org, at)
	if err != nil {
		return nil, fmt.Errorf("loading the rules of a decision: %w", err)
	}
	o := s.Conditions()
	o.KeepDigest, o.KeepJSON = false, false
	known := current.RuleSet
	if at.Origin != "" {
		known = nil // its libraries have revisions of this store
	}
	o.Libraries = s.Sets.librariesOf(known, libraries)
	set := current.Update(rules, o)
	names := set.ListNames()
	if len(names) == 0 {
		return set, nil
	}
	lists, err := s.Documents.ListsAt(ctx, org, names, at)
	if err != nil {
		return nil, fmt.Errorf("loading the lists of a decision: %w", err)
	}
	return set.WithLists(engine.CompileLists(lists)), nil
}

// agentThen sets the status and the names that the agent of an intent had.
func (s *Service) agentThen(
	ctx context.Context, turn condition.Turn, r *storage.Record, in *engine.Intent, stood *Stood,
) error {
	var agents namesakes // none was registered
	if r.AgentRevision != 0 {
		var err error
		agents, err = s.Sets.agents.GetFor(ctx, turn, setKey{r.OrganizationID, engine.FoldID(in.AgentID)})
		if err != nil {
			return fmt.Errorf("loading the agent of a decision: %w", err)
		}
	}
	agents.disabled = r.Found(engine.CodeAgentDisabled)
	stood.Agent, stood.Names = agents.status(in.AgentID), agents.names(in.AgentID)
	if stood.Agent == engine.AgentUnregistered {
		stood.RequireRegistered = r.Found(engine.CodeAgentUnregistered)
	}
	return nil
}

// sessionThen sets the session of a row.
func (s *Service) sessionThen(ctx context.Context, r *storage.Record, stood *Stood) error {
	if r.SessionID == "" {
		return nil
	}
	doc, err := s.Documents.Session(ctx, r.OrganizationID, r.SessionID)
	if errors.Is(err, storage.ErrNotFound) {
		stood.Lacking = append(stood.Lacking, "session")
		return nil
	}
	if err != nil {
		return fmt.Errorf("loading the session of a decision: %w", err)
	}
	if doc.Status = engine.SessionActive; r.Found(engine.CodeSessionClosed) {
		doc.Status = engine.SessionClosed
	}
	session, err := engine.CompileSession(doc)
	if err != nil {
		return fmt.Errorf("compiling the session of a decision: %w", err)
	}
	stood.Session = engine.InSession{CompiledSession: session, Expired: r.Found(engine.CodeSessionExpired)}
	return nil
}
