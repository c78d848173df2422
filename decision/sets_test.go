package decision

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

var errNotFound = errors.New("not found")

// memorySource is the store of one organization. It counts the loads.
type memorySource struct {
	mu       sync.Mutex
	policies map[string]*engine.ActionPolicy
	rules    []engine.Rule
	agents   map[string]engine.AgentStatus
	stop     *storage.Stop
	revision int64 // of the rules
	failing  error
	loads    int
}

func newSource() *memorySource {
	return &memorySource{
		policies: map[string]*engine.ActionPolicy{corpus.PolicyID: corpus.ReferencePolicy()},
		agents:   map[string]engine.AgentStatus{corpus.Agent: engine.AgentActive},
	}
}

func (s *memorySource) lookup(org string) error {
	s.loads++
	if org != corpus.Organization {
		return errNotFound
	}
	return s.failing
}

func (s *memorySource) Policy(_ context.Context, org, id string) (*engine.ActionPolicy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lookup(org); err != nil {
		return nil, err
	}
	if p := s.policies[id]; p != nil {
		return p, nil
	}
	return nil, errNotFound
}

func (s *memorySource) RulesAndLibraries(_ context.Context, org string) ([]engine.Rule, []engine.Library, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules, nil, s.revision, s.lookup(org)
}

func (s *memorySource) Lists(context.Context, string, []string) ([]engine.List, int64, error) {
	return nil, 0, nil
}

func (s *memorySource) Stopped(context.Context, string) (*storage.Stop, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop, s.failing
}

func (s *memorySource) Session(context.Context, string, string) (*engine.Session, error) {
	return nil, errors.New("no session")
}

func (s *memorySource) AgentsNamed(_ context.Context, org, name string) ([]*engine.Agent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var agents []*engine.Agent
	for id, status := range s.agents {
		if engine.FoldID(id) == engine.FoldID(name) {
			agents = append(agents, &engine.Agent{ID: "id of " + id, ExternalID: id, Status: status})
		}
	}
	return agents, s.lookup(org)
}

// change changes the store as a handler does.
func (s *memorySource) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func evaluate(t *testing.T, sets *Sets, in *engine.Intent) engine.Decision {
	t.Helper()
	set, err := sets.Load(t.Context(), nil, corpus.Organization, in.PolicyID, in.AgentID)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return engine.Evaluate(set.Policy, set.Rules, &engine.Input{Intent: in, Agent: set.Agent}).Decision
}

// TestDecision_Agents_KillSwitchComparesFolded checks the promise "In check 2 ids are equal
// when they are after NFKC and case folding; of several that are, a disabled one denies for
// all, and `agent.status` is `disabled` for rules too. … Registration … compare exactly."
func TestDecision_Agents_KillSwitchComparesFolded(t *testing.T) {
	src := newSource()
	src.agents = map[string]engine.AgentStatus{"Bot": engine.AgentActive, "bot": engine.AgentActive, "Stra\u00dfe": engine.AgentActive}
	sets := newSets(setsConfig{source: src, maxBytes: 1 << 20})
	status := func(agentID string) engine.AgentStatus {
		t.Helper()
		set, err := sets.Load(t.Context(), nil, corpus.Organization, corpus.PolicyID, agentID)
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		return set.Agent
	}
	spellings := []string{"bot", "Bot", "BOT", "\uff42ot"}
	for i, want := range []engine.AgentStatus{engine.AgentActive, engine.AgentActive, engine.AgentUnregistered, engine.AgentUnregistered} {
		if got := status(spellings[i]); got != want {
			t.Errorf("status of %q = %v, want %v", spellings[i], got, want)
		}
	}
	src.change(func() { src.agents["Bot"] = engine.AgentDisabled })
	sets.InvalidateAgent(corpus.Organization, "Bot")
	for _, id := range spellings {
		if got := status(id); got != engine.AgentDisabled {
			t.Errorf("status of %q = %v once Bot is disabled, want disabled", id, got)
		}
	}
	if got := status("STRASSE"); got != engine.AgentUnregistered {
		t.Errorf("status of STRASSE = %v, want unregistered", got)
	}
	src.change(func() { src.agents["Bot"] = engine.AgentActive })
	sets.InvalidateAgent(corpus.Organization, "BOT")
	if got := status("bot"); got != engine.AgentActive {
		t.Errorf("status of bot = %v once Bot is enabled again, want active", got)
	}
}

// TestDecision_Agents_OneKeyForEachName checks that every name of an agent loads the agent's names.
func TestDecision_Agents_OneKeyForEachName(t *testing.T) {
	src := newSource()
	src.agents = map[string]engine.AgentStatus{"Bot": engine.AgentActive}
	sets := newSets(setsConfig{source: src, maxBytes: 1 << 20})
	for sent, want := range map[string]engine.AgentNames{
		"bot":   {Sent: "bot", ID: "id of Bot", ExternalID: "Bot"},
		"other": {Sent: "other"},
	} {
		set, err := sets.Load(t.Context(), nil, corpus.Organization, corpus.PolicyID, sent)
		if err != nil || set.Names != want {
			t.Errorf("Load of %q = %+v, %v, want %+v", sent, set.Names, err, want)
		}
	}
}

func TestSets_LoadsEachOnce(t *testing.T) {
	src := newSource()
	sets := newSets(setsConfig{source: src, maxBytes: 1 << 20})
	for range 10 {
		evaluate(t, sets, corpus.AllowedIntent())
	}
	if src.loads != 3 {
		t.Errorf("%d loads, want 3: the policy, the rules and the agent", src.loads)
	}
	for name, s := range map[string]CacheStats{"policies": sets.policies.Stats(), "rules": sets.rules.Stats(), "agents": sets.agents.Stats()} {
		if s.Hits != 9 || name == "policies" && s.Bytes == 0 {
			t.Errorf("Stats() of %s = %+v, want 9 hits", name, s)
		}
	}
}

func TestSets_NoDecisionWithoutItsParts(t *testing.T) {
	src := newSource()
	sets := newSets(setsConfig{source: src, maxBytes: 1 << 20})
	if _, err := sets.Load(t.Context(), nil, corpus.Organization, "unknown", corpus.Agent); !errors.Is(err, errNotFound) {
		t.Errorf("Load of an unknown policy = %v, want %v", err, errNotFound)
	}
	if _, err := sets.Load(t.Context(), nil, "another", corpus.PolicyID, corpus.Agent); !errors.Is(err, errNotFound) {
		t.Errorf("Load of another organization's policy = %v, want %v", err, errNotFound)
	}
	down := errors.New("down")
	src.change(func() { src.failing = down })
	if set, err := sets.Load(t.Context(), nil, corpus.Organization, corpus.PolicyID, corpus.Agent); !errors.Is(err, down) || set.Policy != nil {
		t.Errorf("Load from a store that is down = %v, %v, want nothing and %v", set, err, down)
	}
	src.change(func() {
		src.failing = nil
		src.policies["broken"] = &engine.ActionPolicy{PolicyID: "broken"}
	})
	if set, err := sets.Load(t.Context(), nil, corpus.Organization, "broken", corpus.Agent); err != nil || !set.Policy.Unreadable() {
		t.Errorf("Load of an invalid policy = %v, %v, want one that denies", set, err)
	}
}

func TestSets_UnknownAgentsStayWithinTheBound(t *testing.T) {
	const limit = 64 << 10
	sets := newSets(setsConfig{source: newSource(), maxBytes: limit})
	for i := range 2000 {
		if _, err := sets.Load(t.Context(), nil, corpus.Organization, corpus.PolicyID, fmt.Sprint("nobody-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if s := sets.agents.Stats(); s.Bytes > limit/8 || s.Evictions == 0 {
		t.Errorf("agents take %d bytes after %d evictions, want at most %d", s.Bytes, s.Evictions, limit/8)
	}
	if n := sets.policies.Stats().Loads; n != 1 {
		t.Errorf("the policy was loaded %d times, want 1: agents must not evict it", n)
	}
}

func BenchmarkSetsLoad(b *testing.B) {
	sets := newSets(setsConfig{source: newSource(), maxBytes: 1 << 20})
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sets.Load(ctx, nil, corpus.Organization, corpus.PolicyID, corpus.Agent); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSets_KeysHoldOnToNoBodies checks that a kept agent id does not keep the body of which it
// is a part.
func TestSets_KeysHoldOnToNoBodies(t *testing.T) {
	const n, body = 100, 256 << 10
	sets := newSets(setsConfig{source: newSource(), maxBytes: 8 << 20})
	before := heap()
	for i := range n {
		id := (strings.Repeat("x", body) + fmt.Sprint("nobody-", i))[body:]
		if _, err := sets.Load(t.Context(), nil, corpus.Organization, corpus.PolicyID, id); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > n*body/10 {
		t.Errorf("%d agents keep %d bytes alive", n, grown)
	}
	runtime.KeepAlive(sets)
}

// TestDecision_Resources_StoredPoliciesThatNoLongerCompileDeny checks the promise "A stored
// policy version that no longer compiles denies with `policy.unreadable` …; stored rules keep
// running."
func TestDecision_Resources_StoredPoliciesThatNoLongerCompileDeny(t *testing.T) {
	src := newSource()
	stored := corpus.ReferencePolicy()
	stored.BlockedResourcePatterns = []string{"a["}
	src.policies[corpus.PolicyID] = stored
	src.rules = []engine.Rule{{ID: "r", Name: "r", Condition: "{}", Action: `{"decision":"allow"}`, IsActive: true}}
	set, err := newSets(setsConfig{source: src, maxBytes: 1 << 20}).Load(t.Context(), nil, corpus.Organization, corpus.PolicyID, corpus.Agent)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	got := engine.Evaluate(set.Policy, set.Rules, &engine.Input{Intent: corpus.AllowedIntent(), Agent: set.Agent})
	if got.Decision != engine.Deny || got.Findings[0].Code != engine.CodePolicyUnreadable || got.Findings[1].RuleID != "r" {
		t.Errorf("Evaluate = %+v, want a deny for %s and the rule's finding", got, engine.CodePolicyUnreadable)
	}
}
