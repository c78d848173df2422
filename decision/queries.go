package decision

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

// PrepareError is why there is no [Query] of a policy version and rules. It is
// kept as the query would be.
type PrepareError struct {
	err  error
	told atomic.Bool
}

// Error implements error.
func (e *PrepareError) Error() string { return "preparing a query: " + e.err.Error() }

// Unwrap returns what went wrong.
func (e *PrepareError) Unwrap() error { return e.err }

// First reports whether this is its first call. Callers use it to log each error once.
func (e *PrepareError) First() bool { return !e.told.Swap(true) }

// queryKey is a policy version with rules: the writes of the store that left them so.
type queryKey struct {
	policy                        setKey
	policyRevision, rulesRevision int64
}

// kept is a query, or why there is none.
type kept struct {
	query Query
	err   *PrepareError
}

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

// Query returns what decides by the policy and the rules of set, which is the
// organization's, as [Config.PrepareQuery] prepares them: once for all who ask. The
// error is a [*PrepareError] where they cannot be prepared, or would take more than all
// queries may together.
func (s *Sets) Query(ctx context.Context, org string, set engine.Set) (Query, error) {
	if s.cfg.prepare == nil {
		return nil, errors.New("no queries are prepared here")
	}
	doc := set.Policy.Document()
	key := queryKey{setKey{org, doc.PolicyID}, set.Revisions.Policy, set.Revisions.Rules}
	k, err := s.queries.get(ctx, key, func(context.Context, queryKey) (kept, error) { return s.prepareQuery(set), nil })
	switch {
	case err != nil:
		return nil, fmt.Errorf("preparing a query: %w", err)
	case k.err != nil:
		return nil, k.err
	}
	return k.query, nil
}

func (s *Sets) prepareQuery(set engine.Set) kept {
	defer s.timed(compiledQuery, time.Now())
	rules := make([]engine.Rule, 0, len(set.Rules.Rules()))
	for _, r := range set.Rules.Rules() {
		rules = append(rules, r.Rule())
	}
	q, err := s.cfg.prepare(set.Policy.Document(), rules, set.Rules.Lists())
	if err == nil {
		if k := (kept{query: q}); k.size() > s.queries.max {
			err = fmt.Errorf("it takes %d bytes, all queries may take %d", k.size(), s.queries.max)
		}
	}
	if err != nil {
		return kept{err: &PrepareError{err: err}}
	}
	return kept{query: q}
}
