package rego

import (
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// session draws a session for a generated intent.
func (g *generator) session(t *testing.T, in *engine.Intent) engine.InSession {
	t.Helper()
	s := &engine.Session{ID: "s", PolicyID: in.PolicyID, AgentID: in.AgentID, Status: engine.SessionActive}
	switch {
	case g.chance(15):
		s.AgentID = "another"
	case g.chance(30): // another spelling
		s.AgentID = strings.ToUpper(s.AgentID)
	}
	if g.chance(10) {
		s.PolicyID = "1b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10"
	}
	if g.chance(50) {
		s.AllowedActionTypes = append(g.some(3, actionTypes), g.one(actionGlobs...))
	}
	if g.chance(50) {
		s.AllowedResourcePatterns = append(g.some(3, resourceGlobs), g.one(resourceGlobs...))
	}
	if g.chance(40) {
		n := max(g.number(), 0)
		s.MaxCostMinor = &n
	}
	if g.chance(10) {
		s.Status = engine.SessionClosed
	}
	c, err := engine.CompileSession(s)
	if err != nil {
		t.Fatalf("CompileSession(%s): %v", marshal(s), err)
	}
	return engine.InSession{CompiledSession: c, Expired: g.chance(10)}
}

// TestDecision_Sessions_CELAndRegoAgreeAndOnlyNarrow checks that the engine and Rego decide alike
// in a session, and that a session makes no decision milder.
func TestDecision_Sessions_CELAndRegoAgreeAndOnlyNarrow(t *testing.T) {
	const policies, intents = 60, 20
	allowed, narrowed := 0, 0
	for seed := range uint64(policies) {
		g := newGenerator(seed)
		p := g.policy()
		c := newComparison(t, p, nil)
		for range intents {
			in := g.input()
			without := engine.Evaluate(c.policy, c.rules, in)
			in.Session = g.session(t, in.Intent)
			got := engine.Evaluate(c.policy, c.rules, in)
			decision, codes, err := c.query.Evaluate(in)
			if err != nil || decision != got.Decision || !slices.Equal(codes, slices.Compact(codesOf(got))) {
				t.Fatalf("seed %d: Query.Evaluate = %v %v %v, engine.Evaluate = %v %v\n%s\n%s\n%s", seed, decision, codes, err, got.Decision, got.Reasons(),
					marshal(p), marshal(in.Session.Document()), marshal(in.Intent))
			}
			if got.Decision < without.Decision {
				t.Fatalf("seed %d: %v in the session %s, %v without it", seed, got.Decision, marshal(in.Session.Document()), without.Decision)
			}
			if without.Decision == engine.Allow {
				allowed++
				if got.Decision != engine.Allow {
					narrowed++
				}
			}
			restricted := c.policy.Restrict(without, in)
			if restricted.Decision != got.Decision {
				t.Fatalf("seed %d: Restrict = %v %v, engine.Evaluate = %v %v", seed, restricted.Decision, restricted.Reasons(), got.Decision, got.Reasons())
			}
		}
	}
	t.Logf("%d of %d allowed intents are narrowed", narrowed, allowed)
	if narrowed*10 < allowed || narrowed == allowed {
		t.Errorf("the sessions are lopsided: %d of %d allowed intents are narrowed", narrowed, allowed)
	}
}

func TestLowerSession_WithoutItsStateDenies(t *testing.T) {
	in := listInput()
	s := &engine.Session{ID: "s", PolicyID: in.Intent.PolicyID, AgentID: in.Intent.AgentID, Status: engine.SessionActive, ExpiresAt: time.Unix(1, 0)}
	file := must.Get(LowerSession(s))(t)
	q := must.Get(Prepare(samplePolicy(), nil, nil))(t)
	input := must.Get(Input(samplePolicy(), in))(t)
	codes, err := q.inSession(s, input)
	if want := []engine.Code{engine.CodeSessionClosed, engine.CodeSessionExpired, engine.CodeSessionNotAllowed}; err != nil || !slices.Equal(codes, want) {
		t.Errorf("codes = %v, %v, want %v of\n%s", codes, err, want, file.Source)
	}
}
