package engine

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"writ/engine/condition"
)

// Source is where [Sets] loads from. Its methods return what is stored when
// they are called, never something older.
type Source interface {
	// Policy returns the newest version of a policy.
	Policy(ctx context.Context, org, policyID string) (*ActionPolicy, error)
	// AllRules returns every rule of the organization, in any order, and a revision
	// of the store at which they were so.
	AllRules(ctx context.Context, org string) (rules []Rule, revision int64, err error)
	// Lists returns those of the organization's lists that have one of names, and the
	// revision of the last write to one of them.
	Lists(ctx context.Context, org string, names []string) (lists []List, revision int64, err error)
	// AgentsNamed returns every agent of the organization whose ID or ExternalID
	// equals name once both are folded: see [FoldID].
	AgentsNamed(ctx context.Context, org, name string) ([]*Agent, error)
	// Session returns a session.
	Session(ctx context.Context, org, id string) (*Session, error)
}

// Set is what [Evaluate] needs to decide the intents of one agent under one policy.
type Set struct {
	Policy *Policy
	Rules  *RuleSet
	Agent  AgentStatus
	// Revisions are those of the store that these are of.
	Revisions Revisions
}

// Revisions are the writes of a store that left the newest version of a policy, the
// rules and the agents of a name as they are; 0 where there is none.
type Revisions struct{ Policy, Rules, Agent int64 }

// Sets keeps compiled policies, compiled rules and agent statuses, bounded by
// bytes. It is safe for concurrent use.
//
// Whoever changes a policy, the rules or an agent calls the matching Invalidate
// method after the change is stored: a [Sets.Load] that starts later sees it.
type Sets struct {
	policies *Cache[setKey, *Policy]
	rules    *Cache[string, *RuleSet]
	agents   *Cache[setKey, namesakes]
	sessions *Cache[setKey, *CompiledSession]
	queries  *Cache[queryKey, kept] // nil without [Options.PrepareQuery]
	prepare  func(*ActionPolicy, []Rule, condition.Lists) (Query, error)
	retired  retired
	// compiled is told of compilations, nil if nobody is.
	compiled atomic.Pointer[func(CompiledKind, time.Duration)]
}

// CompiledKind is what was compiled.
type CompiledKind string

const (
	compiledPolicy CompiledKind = "policy"
	compiledRules  CompiledKind = "rules"
	compiledQuery  CompiledKind = "query"
)

// OnCompile has f called after every compilation from now on, with how long it
// took, whatever came of it; it replaces an earlier f. f must be safe for
// concurrent use: what was compiled waits for it.
func (s *Sets) OnCompile(f func(kind CompiledKind, took time.Duration)) { s.compiled.Store(&f) }

func (s *Sets) timed(kind CompiledKind, start time.Time) {
	if f := s.compiled.Load(); f != nil {
		(*f)(kind, time.Since(start))
	}
}

// RulesRoom is how many bytes the compiled rules of one organization may take: half of
// what is kept of rules. A set that is not kept would be compiled for each decision and
// would evict others.
func (s *Sets) RulesRoom() int { return int(s.rules.max / 2) }

// setKey is a document of an organization.
type setKey struct{ org, id string }

// agentBytes is what the agents of one name take in the cache at most, the key
// included and their own names not.
const agentBytes = 768

// NewSets returns an empty Sets over src that keeps at most maxBytes: half of
// it policies, a quarter rules, an eighth the rules that a change made
// stale, a sixteenth each agents and sessions. With [Options.PrepareQuery] policies and queries share their
// half.
func NewSets(src Source, o Options, maxBytes int64) *Sets {
	s := &Sets{retired: retired{max: maxBytes / 8, sets: make(map[string]*RuleSet)}}
	policies := maxBytes / 2
	if o.PrepareQuery != nil {
		policies /= 2
		s.queries, s.prepare = newQueries(policies), o.PrepareQuery
	}
	s.policies = NewCache(policies, policyBytes, func(ctx context.Context, k setKey) (*Policy, error) {
		doc, err := src.Policy(ctx, k.org, k.id)
		if err != nil {
			return nil, fmt.Errorf("loading policy %s: %w", k.id, err)
		}
		defer running(ctx)()
		defer s.timed(compiledPolicy, time.Now())
		p, err := compileStored(doc)
		if err != nil {
			return nil, fmt.Errorf("compiling policy %s: %w", k.id, err)
		}
		return p, nil
	})
	s.rules = NewCache(maxBytes/4, rulesBytes, func(ctx context.Context, org string) (*RuleSet, error) {
		rules, revision, err := src.AllRules(ctx, org)
		if err != nil {
			return nil, fmt.Errorf("loading the rules: %w", err)
		}
		defer s.timed(compiledRules, time.Now())
		done := running(ctx)
		set := s.retired.take(org).Update(rules, o)
		done()
		set.revision = revision
		if names := set.ListNames(); len(names) > 0 {
			lists, revision, err := src.Lists(ctx, org, names)
			if err != nil {
				return nil, fmt.Errorf("loading the lists of the rules: %w", err)
			}
			defer running(ctx)()
			set.look(CompileLists(lists))
			set.revision = max(set.revision, revision)
		}
		return set, nil
	})
	s.agents = NewCache(maxBytes/16, namesakes.size, func(ctx context.Context, k setKey) (namesakes, error) {
		agents, err := src.AgentsNamed(ctx, k.org, k.id)
		if err != nil {
			return namesakes{}, fmt.Errorf("loading agent %s: %w", k.id, err)
		}
		return newNamesakes(agents), nil
	})
	s.sessions = NewCache(maxBytes/16, sessionBytes, func(ctx context.Context, k setKey) (*CompiledSession, error) {
		doc, err := src.Session(ctx, k.org, k.id)
		if err != nil {
			return nil, fmt.Errorf("loading session %s: %w", k.id, err)
		}
		defer running(ctx)()
		c, err := CompileSession(doc)
		if err != nil {
			return nil, fmt.Errorf("compiling session %s: %w", k.id, err)
		}
		return c, nil
	})
	s.sessions.own = cloneKey
	s.policies.own, s.rules.own, s.agents.own = cloneKey, strings.Clone, cloneKey
	return s
}

// cloneKey copies a key whose strings may be parts of a request's body. Those of the
// copy are parts of one string: looking it up reads one piece of memory.
func cloneKey(k setKey) setKey {
	both := string(append([]byte(k.org), k.id...)) // a sum with an empty text would copy nothing
	return setKey{both[:len(k.org)], both[len(k.org):]}
}

func policyBytes(p *Policy) int64           { return int64(p.Size()) }
func sessionBytes(c *CompiledSession) int64 { return int64(c.Size()) }
func rulesBytes(rs *RuleSet) int64          { return int64(rs.Size()) }

// turnKey is the key of the [condition.Turn] of the work that a load is for.
type turnKey struct{}

// GetFor is [Cache.Get] for work that has a turn, or none. It pauses while it waits for the
// source, or for what others load, and runs while it compiles.
func (c *Cache[K, V]) GetFor(ctx context.Context, turn condition.Turn, key K) (V, error) {
	if v, ok := c.Kept(key); ok {
		return v, nil
	}
	defer condition.Paused(turn)()
	return c.Get(context.WithValue(ctx, turnKey{}, turn), key)
}

// running has the work that a load is for run until done, if it has a turn.
func running(ctx context.Context) (done func()) {
	if turn, ok := ctx.Value(turnKey{}).(condition.Turn); ok && turn.Resume() {
		return func() { turn.Pause() }
	}
	return func() {}
}

// Load returns the current policy, rules and agent status. An error means that
// nothing can be decided. The turn is that of the work that it is for; nil if there is none.
func (s *Sets) Load(ctx context.Context, turn condition.Turn, org, policyID, agentID string) (Set, error) {
	policy, err := s.policies.GetFor(ctx, turn, setKey{org, policyID})
	if err != nil {
		return Set{}, err
	}
	rules, err := s.rules.GetFor(ctx, turn, org)
	if err != nil {
		return Set{}, err
	}
	agents, err := s.agents.GetFor(ctx, turn, setKey{org, FoldID(agentID)})
	if err != nil {
		return Set{}, err
	}
	return Set{
		Policy: policy, Rules: rules, Agent: agents.status(agentID),
		Revisions: Revisions{policy.Document().Revision, rules.revision, agents.revision},
	}, nil
}

// Rules returns the current rules of an organization, as [Sets.Load] does.
func (s *Sets) Rules(ctx context.Context, turn condition.Turn, org string) (*RuleSet, error) {
	return s.rules.GetFor(ctx, turn, org)
}

// Policy returns the current version of a policy, as [Sets.Load] does.
func (s *Sets) Policy(ctx context.Context, turn condition.Turn, org, policyID string) (*Policy, error) {
	return s.policies.GetFor(ctx, turn, setKey{org, policyID})
}

// Agent returns the current status of an agent under one of its names, as [Sets.Load] does.
func (s *Sets) Agent(ctx context.Context, turn condition.Turn, org, agentID string) (AgentStatus, error) {
	agents, err := s.agents.GetFor(ctx, turn, setKey{org, FoldID(agentID)})
	if err != nil {
		return AgentDisabled, err
	}
	return agents.status(agentID), nil
}

// Session returns the current state of a session, as [Sets.Load] does.
func (s *Sets) Session(ctx context.Context, turn condition.Turn, org, id string) (*CompiledSession, error) {
	return s.sessions.GetFor(ctx, turn, setKey{org, id})
}

// Plain reports whether the rules of an organization are compiled and kept, and
// none of them is in Rego: what is decided under them is cheap.
func (s *Sets) Plain(org string) bool {
	e := s.rules.peek(org)
	return e != nil && !e.value.hasRego
}

// InvalidatePolicy forgets a policy.
func (s *Sets) InvalidatePolicy(org, policyID string) {
	s.policies.Invalidate(setKey{org, policyID})
	s.invalidateQueries(func(k queryKey) bool { return k.policy == setKey{org, policyID} })
}

// InvalidateRules forgets the rules of an organization, and the lists that they look in.
func (s *Sets) InvalidateRules(org string) {
	if stale, ok := s.rules.Invalidate(org); ok {
		s.retired.put(org, stale)
	}
	s.invalidateQueries(func(k queryKey) bool { return k.policy.org == org })
}

// InvalidateAgent forgets the status of an agent under one of the names that
// intents call it by: its id and its external id are invalidated one by one.
func (s *Sets) InvalidateAgent(org, agentID string) {
	s.agents.Invalidate(setKey{org, FoldID(agentID)})
}

// InvalidateSession forgets a session.
func (s *Sets) InvalidateSession(org, id string) { s.sessions.Invalidate(setKey{org, id}) }

// InvalidateAll forgets everything.
func (s *Sets) InvalidateAll() {
	s.policies.InvalidateAll()
	s.rules.InvalidateAll()
	s.agents.InvalidateAll()
	s.sessions.InvalidateAll()
	s.invalidateQueries(func(queryKey) bool { return true })
}

// OnlyWhile has what is kept used only while fresh returns true: while it does
// not, everything is loaded for each [Sets.Load]. It must be called before the
// Sets are used.
func (s *Sets) OnlyWhile(fresh func() bool) {
	s.policies.OnlyWhile(fresh)
	s.rules.OnlyWhile(fresh)
	s.agents.OnlyWhile(fresh)
	s.sessions.OnlyWhile(fresh)
}

// SetsStats counts what the caches of a [Sets] did.
type SetsStats struct {
	Policies, Rules, Agents, Sessions, Queries CacheStats
}

// Stats returns the counters.
func (s *Sets) Stats() SetsStats {
	stats := SetsStats{Policies: s.policies.Stats(), Rules: s.rules.Stats(), Agents: s.agents.Stats(),
		Sessions: s.sessions.Stats()}
	if s.queries != nil {
		stats.Queries = s.queries.Stats()
	}
	return stats
}
