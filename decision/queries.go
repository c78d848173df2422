package decision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// Query decides with the Rego rendering of a policy version and its rules. It is safe for
// concurrent use.
type Query interface {
	// Evaluate returns the decision, and the codes of all findings in sorted order. An error
	// means that there is no decision. Evaluate must not modify or keep in.
	Evaluate(in *engine.Input) (engine.Decision, []engine.Code, error)
	// Size returns about how many bytes the query keeps in memory.
	Size() int
}

// prepareFunc prepares the query of a policy version and its active rules.
type prepareFunc = func(
	p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, libraries []engine.Library,
) (Query, error)

// queryKey names a policy version and rules. It names them by the revisions of the store that
// wrote them.
type queryKey struct {
	policy                        setKey
	policyRevision, rulesRevision int64
}

// cachedQuery is a query, or the error that prevented it from being prepared.
type cachedQuery struct {
	query Query
	err   error
}

// errUnprepared means that a query could not be prepared. The cause was logged.
var errUnprepared = errors.New("the policy's Rego cannot be prepared")

// queryBytes is the size of an entry of the cache without the query itself.
const queryBytes = 256

func (k cachedQuery) size() int64 {
	if k.query == nil {
		return queryBytes
	}
	return queryBytes + int64(k.query.Size())
}

// newQueries returns the cache of queries. A key names revisions, so the query of a key is
// never stale. Therefore the cache needs no [Sets.OnlyWhile], and invalidating a key only makes
// room.
func newQueries(maxBytes int64) *Cache[queryKey, cachedQuery] {
	c := NewCache[queryKey](maxBytes, cachedQuery.size, nil) // each get has its own load function
	c.own = func(k queryKey) queryKey {
		k.policy = cloneKey(k.policy)
		return k
	}
	return c
}

// query returns the query for the policy and the rules of an organization's set. Each query is
// prepared once, by [Config.PrepareQuery]. The error is errUnprepared if that fails or if the
// query is larger than the whole cache.
func (s *Sets) query(ctx context.Context, org string, set engine.Set) (Query, error) {
	doc := set.Policy.Document()
	key := queryKey{setKey{org, doc.PolicyID}, set.Revisions.Policy, set.Revisions.Rules}
	k, err := s.queries.get(ctx, key, func(context.Context, queryKey) (cachedQuery, error) {
		return s.prepareQuery(set), nil
	})
	if err != nil {
		return nil, fmt.Errorf("preparing a query: %w", err)
	}
	return k.query, k.err
}

func (s *Sets) prepareQuery(set engine.Set) cachedQuery {
	defer s.timed(compiledQuery, time.Now())
	rules := make([]engine.Rule, 0, len(set.Rules.Rules()))
	for _, r := range set.Rules.Rules() {
		rules = append(rules, r.Rule())
	}
	var libraries []engine.Library
	if all := set.Rules.Libraries(); all != nil {
		libraries = all.Documents()
	}
	q, err := s.cfg.prepare(set.Policy.Document(), rules, set.Rules.Lists(), libraries)
	if err == nil {
		k := cachedQuery{query: q}
		if k.size() <= s.queries.max {
			return k
		}
		err = fmt.Errorf("it takes %d bytes, all queries may take %d", k.size(), s.queries.max)
	}
	s.cfg.log.Warn("decisions under a policy cannot be verified: its Rego cannot be prepared", policyOf(set),
		"problem", fmt.Errorf("preparing a query: %w", err))
	return cachedQuery{err: errUnprepared}
}
