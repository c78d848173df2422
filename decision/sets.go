package decision

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// source is the store from which [Sets] loads. Each method returns the documents that are
// stored at the time of the call, never older ones.
type source interface {
	// Policy returns the newest version of a policy.
	Policy(ctx context.Context, org, policyID string) (*engine.ActionPolicy, error)
	// RulesAndLibraries returns every rule and every library of the organization, in any order. It
	// also returns a revision of the store at which the organization had exactly these, and no list
	// with a greater revision.
	RulesAndLibraries(ctx context.Context, org string) (
		rules []engine.Rule, libraries []engine.Library, revision int64, err error)
	// Lists returns the organization's lists with these names. It also returns the revision of
	// the last write to one of the lists.
	Lists(ctx context.Context, org string, names []string) (lists []engine.List, revision int64, err error)
	// AgentsNamed returns every agent of the organization whose ID or ExternalID equals name
	// after both are folded: see [engine.FoldID].
	AgentsNamed(ctx context.Context, org, name string) ([]*engine.Agent, error)
	// Session returns a session.
	Session(ctx context.Context, org, id string) (*engine.Session, error)
	// Stopped returns the stop of an organization, or nil if the organization is active.
	Stopped(ctx context.Context, org string) (*storage.Stop, error)
}

// Sets keeps compiled policies, compiled rules, agent statuses and which organizations are
// stopped. Their size in bytes is bounded. Sets is safe for concurrent use.
//
// After a change is stored, the matching Invalidate method must be called. A [Sets.Load] that
// starts later then sees the change. A [Service] calls the method for each change of its store.
type Sets struct {
	policies *Cache[setKey, *engine.Policy]
	rules    *Cache[string, orgRules]
	agents   *Cache[setKey, namesakes]
	sessions *Cache[setKey, *engine.CompiledSession]
	stops    *Cache[string, bool]
	queries  *Cache[queryKey, cachedQuery]
	retired  retired
	cfg      setsConfig
}

// setsConfig configures Sets.
type setsConfig struct {
	source  source
	options engine.Options
	// prepare prepares queries. If it is nil, no queries are prepared. Errors of prepare go to
	// log.
	prepare prepareFunc
	log     *slog.Logger
	// compiled is called with the duration of each compilation, also of a failed one.
	compiled func(compiledKind, time.Duration)
	maxBytes int64
}

// compiledKind is a kind of compilation. It is a label value of a metric.
type compiledKind string

const (
	compiledPolicy compiledKind = "policy"
	compiledRules  compiledKind = "rules"
	compiledQuery  compiledKind = "query"
)

func (s *Sets) timed(kind compiledKind, start time.Time) {
	if s.cfg.compiled != nil {
		s.cfg.compiled(kind, time.Since(start))
	}
}

// RulesRoom returns how many bytes the compiled rules of one organization may take. It is half
// of the cache of rules. A larger set would not be kept, so it would be compiled for each
// decision. It would also evict other sets.
func (s *Sets) RulesRoom() int { return int(s.rules.max / 2) }

// setKey names a document of an organization.
type setKey struct{ org, id string }

// orgRules are the rules of an organization. revision is the revision of the last write to the
// rules, to their lists or to the libraries.
type orgRules struct {
	*engine.RuleSet
	revision int64
}

// newSets returns empty Sets that keep at most cfg.maxBytes. Half of the bytes are for
// policies, a quarter for rules, an eighth for the rules that a change made stale, a sixteenth
// for agents, and a thirty-second each for sessions and for stops. If queries are prepared, policies and queries share
// their half.
func newSets(cfg setsConfig) *Sets {
	s := &Sets{cfg: cfg, retired: retired{max: cfg.maxBytes / 8, sets: make(map[string]*engine.RuleSet)}}
	policies, queries := cfg.maxBytes/2, int64(0)
	if cfg.prepare != nil {
		policies /= 2
		queries = policies
	}
	s.queries = newQueries(queries)
	s.policies = NewCache(policies, policyBytes, s.loadPolicy)
	s.rules = NewCache(cfg.maxBytes/4, orgRules.size, s.loadRules)
	s.agents = NewCache(cfg.maxBytes/16, namesakes.size, s.loadAgents)
	s.sessions = NewCache(cfg.maxBytes/32, sessionBytes, s.loadSession)
	s.stops = NewCache(cfg.maxBytes/32, func(bool) int64 { return stopBytes }, s.loadStop)
	s.policies.own, s.rules.own, s.agents.own, s.sessions.own = cloneKey, strings.Clone, cloneKey, cloneKey
	s.stops.own = strings.Clone
	return s
}

func (s *Sets) loadPolicy(ctx context.Context, k setKey) (*engine.Policy, error) {
	doc, err := s.cfg.source.Policy(ctx, k.org, k.id)
	if err != nil {
		return nil, fmt.Errorf("loading policy %s: %w", k.id, err)
	}
	return s.policyOf(ctx, k, doc)
}

func (s *Sets) policyOf(ctx context.Context, k setKey, doc *engine.ActionPolicy) (*engine.Policy, error) {
	defer running(ctx)()
	defer s.timed(compiledPolicy, time.Now())
	p, err := engine.CompileStored(doc)
	if err != nil {
		return nil, fmt.Errorf("compiling policy %s: %w", k.id, err)
	}
	return p, nil
}

func (s *Sets) loadRules(ctx context.Context, org string) (orgRules, error) {
	rules, libraries, revision, err := s.cfg.source.RulesAndLibraries(ctx, org)
	if err != nil {
		return orgRules{}, fmt.Errorf("loading the rules: %w", err)
	}
	return s.rulesOf(ctx, org, rules, libraries, revision)
}

// rulesOf compiles the results of RulesAndLibraries. If a list has changed since, it loads the rules again.
func (s *Sets) rulesOf(
	ctx context.Context, org string, rules []engine.Rule, libraries []engine.Library, revision int64,
) (orgRules, error) {
	for {
		set := s.compileRules(ctx, org, rules, libraries)
		names := set.ListNames()
		if len(names) == 0 {
			return orgRules{set, revision}, nil
		}
		lists, changed, err := s.cfg.source.Lists(ctx, org, names)
		if err != nil {
			return orgRules{}, fmt.Errorf("loading the lists of the rules: %w", err)
		}
		if changed > revision { // a list changed in between, so the two never stood together
			s.retired.put(org, set)
			if rules, libraries, revision, err = s.cfg.source.RulesAndLibraries(ctx, org); err != nil {
				return orgRules{}, fmt.Errorf("loading the rules: %w", err)
			}
			continue
		}
		defer running(ctx)()
		return orgRules{set.WithLists(engine.CompileLists(lists)), revision}, nil
	}
}

func (s *Sets) compileRules(
	ctx context.Context, org string, rules []engine.Rule, libraries []engine.Library,
) *engine.RuleSet {
	defer running(ctx)()
	defer s.timed(compiledRules, time.Now())
	earlier := s.retired.take(org)
	o := s.cfg.options
	o.Libraries = s.librariesOf(earlier, libraries)
	return earlier.Update(rules, o)
}

// librariesOf returns the compiled libraries. If no library has changed since an earlier set, it returns
// the set's libraries, so that the rules that import them stay compiled, too.
func (s *Sets) librariesOf(earlier *engine.RuleSet, docs []engine.Library) engine.Libraries {
	if earlier != nil && earlier.Libraries() != nil &&
		slices.EqualFunc(earlier.Libraries().Documents(), docs, func(a, b engine.Library) bool {
			return a.Name == b.Name && a.Revision == b.Revision
		}) {
		return earlier.Libraries()
	}
	libraries, err := engine.CompileStoredLibraries(docs, s.cfg.options)
	if err != nil && s.cfg.log != nil {
		s.cfg.log.Warn("rules that import a library cannot be evaluated, which tightens", "problem", err)
	}
	return libraries
}

func (s *Sets) loadAgents(ctx context.Context, k setKey) (namesakes, error) {
	agents, err := s.cfg.source.AgentsNamed(ctx, k.org, k.id)
	if err != nil {
		return namesakes{}, fmt.Errorf("loading agent %s: %w", k.id, err)
	}
	return newNamesakes(agents), nil
}

func (s *Sets) loadSession(ctx context.Context, k setKey) (*engine.CompiledSession, error) {
	doc, err := s.cfg.source.Session(ctx, k.org, k.id)
	if err != nil {
		return nil, fmt.Errorf("loading session %s: %w", k.id, err)
	}
	defer running(ctx)()
	c, err := engine.CompileSession(doc)
	if err != nil {
		return nil, fmt.Errorf("compiling session %s: %w", k.id, err)
	}
	return c, nil
}

// stopBytes is about how many bytes the status of an organization takes in the cache.
const stopBytes = 256

func (s *Sets) loadStop(ctx context.Context, org string) (bool, error) {
	stop, err := s.cfg.source.Stopped(ctx, org)
	if err != nil {
		return true, fmt.Errorf("loading whether the organization is stopped: %w", err)
	}
	return stop != nil, nil
}

// cloneKey copies a key, because its strings may be parts of a request's body. Both strings of
// the copy are parts of one string, so that a look-up reads one piece of memory.
func cloneKey(k setKey) setKey {
	both := string(append([]byte(k.org), k.id...)) // with an empty id, + would not copy org
	return setKey{both[:len(k.org)], both[len(k.org):]}
}

func policyBytes(p *engine.Policy) int64           { return int64(p.Size()) }
func sessionBytes(c *engine.CompiledSession) int64 { return int64(c.Size()) }

// rulesBytes is about how many bytes the rules of an organization take in the cache, even if there are none.
const rulesBytes = 512

func (r orgRules) size() int64 { return rulesBytes + int64(r.Size()) }

// Load returns the current policy, rules and agent status, and whether the organization is stopped. If
// there is an error, nothing can be decided. turn is the caller's turn and may be nil.
func (s *Sets) Load(ctx context.Context, turn condition.Turn, org, policyID, agentID string) (engine.Set, error) {
	policy, err := s.policies.GetFor(ctx, turn, setKey{org, policyID})
	if err != nil {
		return engine.Set{}, err
	}
	rules, err := s.rules.GetFor(ctx, turn, org)
	if err != nil {
		return engine.Set{}, err
	}
	agents, err := s.agents.GetFor(ctx, turn, setKey{org, engine.FoldID(agentID)})
	if err != nil {
		return engine.Set{}, err
	}
	stopped, err := s.Stopped(ctx, turn, org)
	if err != nil {
		return engine.Set{}, err
	}
	return engine.Set{
		Policy: policy, Rules: rules.RuleSet, Stopped: stopped,
		Agent: agents.status(agentID), Names: agents.names(agentID),
		Revisions: engine.Revisions{Policy: policy.Document().Revision, Rules: rules.revision, Agent: agents.revision},
	}, nil
}

// Rules returns the current rules of an organization, with the same guarantees as [Sets.Load].
func (s *Sets) Rules(ctx context.Context, turn condition.Turn, org string) (*engine.RuleSet, error) {
	rules, err := s.rules.GetFor(ctx, turn, org)
	return rules.RuleSet, err
}

// Policy returns the current version of a policy, with the same guarantees as [Sets.Load].
func (s *Sets) Policy(ctx context.Context, turn condition.Turn, org, policyID string) (*engine.Policy, error) {
	return s.policies.GetFor(ctx, turn, setKey{org, policyID})
}

// Agent returns the current status and the names of the agent that has agentID as one of its names,
// with the same guarantees as [Sets.Load].
func (s *Sets) Agent(
	ctx context.Context, turn condition.Turn, org, agentID string,
) (engine.AgentStatus, engine.AgentNames, error) {
	agents, err := s.agents.GetFor(ctx, turn, setKey{org, engine.FoldID(agentID)})
	if err != nil {
		return engine.AgentDisabled, engine.AgentNames{}, err
	}
	return agents.status(agentID), agents.names(agentID), nil
}

// Stopped reports whether an organization is stopped, with the same guarantees as [Sets.Load].
func (s *Sets) Stopped(ctx context.Context, turn condition.Turn, org string) (bool, error) {
	return s.stops.GetFor(ctx, turn, org)
}

// Session returns the current state of a session, with the same guarantees as [Sets.Load].
func (s *Sets) Session(ctx context.Context, turn condition.Turn, org, id string) (*engine.CompiledSession, error) {
	return s.sessions.GetFor(ctx, turn, setKey{org, id})
}

// Plain reports whether a decision of an organization is cheap. It is cheap if the rules are
// compiled and kept and none of them is in Rego.
func (s *Sets) Plain(org string) bool {
	e := s.rules.peek(org)
	return e != nil && !e.value.HasRego()
}

// InvalidatePolicy forgets a policy.
func (s *Sets) InvalidatePolicy(org, policyID string) {
	s.policies.Invalidate(setKey{org, policyID})
	s.queries.invalidateWhere(func(k queryKey) bool { return k.policy == setKey{org, policyID} })
}

// InvalidateRules forgets the rules of an organization, and the lists and libraries that these rules
// use.
func (s *Sets) InvalidateRules(org string) {
	if stale, ok := s.rules.Invalidate(org); ok {
		s.retired.put(org, stale.RuleSet)
	}
	s.queries.invalidateWhere(func(k queryKey) bool { return k.policy.org == org })
}

// InvalidateAgent forgets the status of an agent under one of its names. The caller must
// invalidate the id and the external id of an agent separately.
func (s *Sets) InvalidateAgent(org, agentID string) {
	s.agents.Invalidate(setKey{org, engine.FoldID(agentID)})
}

// InvalidateSession forgets a session.
func (s *Sets) InvalidateSession(org, id string) { s.sessions.Invalidate(setKey{org, id}) }

// InvalidateStop forgets whether an organization is stopped.
func (s *Sets) InvalidateStop(org string) { s.stops.Invalidate(org) }

// InvalidateAll forgets everything.
func (s *Sets) InvalidateAll() {
	s.policies.InvalidateAll()
	s.rules.InvalidateAll()
	s.agents.InvalidateAll()
	s.sessions.InvalidateAll()
	s.stops.InvalidateAll()
	s.queries.InvalidateAll()
}

// OnlyWhile makes Sets use the caches only while fresh returns true. While it returns false,
// each [Sets.Load] loads everything from the store. OnlyWhile must be called before the Sets
// are used.
func (s *Sets) OnlyWhile(fresh func() bool) {
	s.policies.OnlyWhile(fresh)
	s.rules.OnlyWhile(fresh)
	s.agents.OnlyWhile(fresh)
	s.sessions.OnlyWhile(fresh)
	s.stops.OnlyWhile(fresh)
}

// metrics returns the metrics of all caches.
func (s *Sets) metrics() []prometheus.Collector {
	return slices.Concat(s.policies.Metrics("policies"), s.rules.Metrics("rules"), s.agents.Metrics("agents"),
		s.sessions.Metrics("sessions"), s.stops.Metrics("stops"), s.queries.Metrics("queries"))
}
