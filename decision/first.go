package decision

import (
	"context"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage/registry"
)

// first loads what a request needs in one read of the store, if neither the rules of the organization nor the agent
// are kept. A replica that registered the organization keeps its plan and its policy. Other requests of the
// organization wait for the read. If it fails, or if a document changes meanwhile, the caches load by themselves.
func (s *Service) first(ctx context.Context, turn condition.Turn, org string, req Request) {
	if s.Sets.rules.peek(org) != nil || !s.Documents.Fresh() {
		return
	}
	policy, agent := setKey{org, req.Intent.PolicyID}, setKey{org, engine.FoldID(req.Intent.AgentID)}
	if s.Sets.agents.peek(agent) != nil {
		return
	}
	defer condition.Paused(turn)()
	own := make(chan struct{})
	if other, underWay := s.firsts.LoadOrStore(org, own); underWay {
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
		}
		return
	}
	defer func() {
		s.firsts.Delete(org)
		close(own)
	}()
	changes := s.changes.Load()
	docs, err := s.Documents.First(ctx, org, policy.id, agent.id)
	if err == nil {
		s.keepFirst(context.WithValue(ctx, turnKey{}, turn), policy, agent, docs, changes)
	}
}

// keepFirst puts documents into the caches that were read after the given number of changes was heard. A
// cache drops a value if it hears of a change after it has begun to load it. These documents were read
// before. So a cache loads them again if any change was heard since. An error of a load comes again when
// somebody needs the value.
func (s *Service) keepFirst(ctx context.Context, policy, agent setKey, docs *registry.First, changes int64) {
	org := policy.org
	current := func() bool { return s.changes.Load() == changes && s.Documents.Fresh() }
	_, _ = s.Plans.cache.get(ctx, org, given(current, s.Plans.Read, s.Plans.of(docs.Subscription)))
	_, _ = s.Sets.agents.get(ctx, agent, given(current, s.Sets.loadAgents, newNamesakes(docs.Agents)))
	_, _ = s.Sets.stops.get(ctx, org, given(current, s.Sets.loadStop, docs.Stop != nil))
	_, _ = s.Sets.rules.get(ctx, org, func(ctx context.Context, org string) (orgRules, error) {
		if !current() {
			return s.Sets.loadRules(ctx, org)
		}
		return s.Sets.rulesOf(ctx, org, docs.Rules, docs.Libraries, docs.Revision)
	})
	if docs.Policy == nil {
		return
	}
	_, _ = s.Sets.policies.get(ctx, policy, func(ctx context.Context, k setKey) (*engine.Policy, error) {
		if !current() {
			return s.Sets.loadPolicy(ctx, k)
		}
		return s.Sets.policyOf(ctx, k, docs.Policy)
	})
}

// given returns a load that returns v if it is current.
func given[K comparable, V any](current func() bool, load loadFunc[K, V], v V) loadFunc[K, V] {
	return func(ctx context.Context, key K) (V, error) {
		if current() {
			return v, nil
		}
		return load(ctx, key)
	}
}
