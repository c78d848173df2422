package decision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/engine"
	"writ/engine/condition"
)

// Query decides by a policy version and rules in another rendering than
// [engine.Evaluate]. It is safe for concurrent use.
type Query interface {
	// Evaluate returns the decision and the codes of all findings, sorted. An error
	// means that there is no decision. in must not be modified or kept.
	Evaluate(in *engine.Input) (engine.Decision, []engine.Code, error)
	// Size returns about how many bytes the query holds on to.
	Size() int
}

// prepareFunc prepares the query of a policy version and its active rules.
type prepareFunc = func(p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists) (Query, error)

// queryKey is a policy version with rules: the writes of the store that left them so.
type queryKey struct {
	policy                        setKey
	policyRevision, rulesRevision int64
}

// kept is a query, or why there is none.
type kept struct {
	query Query
	err   error
}

// errUnprepared is why there is no query of a policy version and rules. It was logged.
var errUnprepared = errors.New("the policy's Rego cannot be prepared")

// queryBytes is what a query takes in the cache beyond its own size.
const queryBytes = 256

func (k kept) size() int64 {
	if k.query == nil {
		return queryBytes
	}
	return queryBytes + int64(k.query.Size())
}

// newQueries returns the cache of queries. What is kept follows from its key and is
// never stale: it needs no [Sets.OnlyWhile], and is invalidated to make room.
func newQueries(maxBytes int64) *Cache[queryKey, kept] {
	c := NewCache[queryKey](maxBytes, kept.size, nil) // each get has a load of its own
	c.own = func(k queryKey) queryKey {
		k.policy = cloneKey(k.policy)
		return k
	}
	return c
}

// query returns what decides by the policy and the rules of set, which is the
// organization's, as [Config.PrepareQuery] prepares them: once for all who ask. The error
// is errUnprepared where they cannot be prepared, or would take more than all queries may
// together.
func (s *Sets) query(ctx context.Context, org string, set engine.Set) (Query, error) {
	doc := set.Policy.Document()
	key := queryKey{setKey{org, doc.PolicyID}, set.Revisions.Policy, set.Revisions.Rules}
	k, err := s.queries.get(ctx, key, func(context.Context, queryKey) (kept, error) { return s.prepareQuery(set), nil })
	if err != nil {
		return nil, fmt.Errorf("preparing a query: %w", err)
	}
	return k.query, k.err
}

func (s *Sets) prepareQuery(set engine.Set) kept {
	defer s.timed(compiledQuery, time.Now())
	rules := make([]engine.Rule, 0, len(set.Rules.Rules()))
	for _, r := range set.Rules.Rules() {
		rules = append(rules, r.Rule())
	}
	q, err := s.cfg.prepare(set.Policy.Document(), rules, set.Rules.Lists())
	if err == nil {
		k := kept{query: q}
		if k.size() <= s.queries.max {
			return k
		}
		err = fmt.Errorf("it takes %d bytes, all queries may take %d", k.size(), s.queries.max)
	}
	s.cfg.log.Warn("decisions under a policy cannot be verified: its Rego cannot be prepared", policyOf(set),
		"problem", fmt.Errorf("preparing a query: %w", err))
	return kept{err: errUnprepared}
}
