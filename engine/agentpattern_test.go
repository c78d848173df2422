package engine

import (
	"math/rand/v2"
	"testing"

	"writ.example/writ/internal/must"
)

func pattern(t testing.TB, text string) *AgentPattern {
	t.Helper()
	p := must.Get(CompileAgentPattern("agent_id", text))(t)
	return p
}

// TestAgentPattern_Folded checks that a folded pattern matches the key of each name that the pattern
// matches, and that folding makes no wildcard.
func TestAgentPattern_Folded(t *testing.T) {
	for text, tt := range map[string]struct{ yes, no string }{
		"Team-A/*": {"team-a/x", "team-b/x"}, "Bot": {"bot", "Bot"}, "*": {"x", ""}, "ｂ*": {"bot", "cot"}, "a＊": {"a＊", "ab"},
	} {
		a, err := CompileAgentPattern("agent_id", text)
		if err != nil {
			t.Fatal(err)
		}
		if folded := a.Folded(); !folded.Matches(tt.yes) || folded.Matches(tt.no) {
			t.Errorf("%q folded: matches %q %v and %q %v, want the first alone",
				text, tt.yes, folded.Matches(tt.yes), tt.no, folded.Matches(tt.no))
		}
	}
}

// TestDecision_Evaluation_AgentPatternsCompareExactly checks that agent ids are compared exactly.
func TestDecision_Evaluation_AgentPatternsCompareExactly(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		yes, no []string
	}{
		{"ci", []string{"ci"}, []string{"CI", "ci ", "ci2", "", "ｃi", "c\u200bi", "cı"}},
		{"*", []string{"ci", "team-a/ci", "x"}, nil},
		{"team-a/*", []string{"team-a/ci"}, []string{"team-a/x/y", "Team-a/ci", "team-b/ci", "team-a"}},
		{"team-a/**", []string{"team-a/ci", "team-a/x/y"}, []string{"team-b/ci", "TEAM-A/ci"}},
		{"{a,b}-ci", []string{"a-ci", "b-ci"}, []string{"c-ci", "A-ci"}},
		{"{a,}", []string{"a"}, []string{"", "b"}},
		{"*", nil, []string{""}},
	} {
		p := pattern(t, tc.pattern)
		for _, id := range tc.yes {
			if !p.Matches(id) {
				t.Errorf("%s does not match %q", p, id)
			}
		}
		for _, id := range tc.no {
			if p.Matches(id) {
				t.Errorf("%s matches %q", p, id)
			}
		}
	}
	for _, bad := range []string{"", " ci", "a\nb", "[", "a\x00"} {
		if _, err := CompileAgentPattern("agent_id", bad); err == nil {
			t.Errorf("CompileAgentPattern(%q) = nil, want an error", bad)
		}
	}
}

func TestAgentPattern_Covers(t *testing.T) {
	for _, tc := range []struct {
		outer, inner string
		want         bool
	}{
		{"*", "ci", true}, {"*", "**", true}, {"*", "team-a/*", true}, {"**", "*", true},
		{"ci", "ci", true}, {"ci", "CI", false}, {"ci", "*", false}, {"ci", "c*", false}, {"ci", "ci*", false},
		{"team-a/*", "team-a/*", true}, {"team-a/*", "team-a/ci", true}, {"team-a/*", "team-a/x/y", false},
		{"team-a/*", "team-a/**", false}, {"team-a/*", "*", false}, {"team-a/*", "**", false},
		{"team-a/**", "team-a/*", true}, {"team-a/**", "team-a/ci-*", true}, {"team-a/**", "team-a/x/y", true},
		{"team-a/**", "team-b/*", false}, {"team-a/**", "team-*/x", false}, {"team-a/**", "{team-a/x,team-b/x}", false},
		{"t*m-a/**", "t*m-a/x/*", false},
	} {
		if got := pattern(t, tc.outer).Covers(tc.inner); got != tc.want {
			t.Errorf("%s covers %s = %v, want %v", tc.outer, tc.inner, got, tc.want)
		}
	}
}

// TestAgentPattern_WhatIsCoveredIsMatched checks that a covering pattern matches every id that the
// covered pattern matches. The test uses few different characters, so that random ids often match
// random patterns.
func TestAgentPattern_WhatIsCoveredIsMatched(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(alphabet []string) (s string) {
		for range 1 + rng.IntN(5) {
			s += alphabet[rng.IntN(len(alphabet))]
		}
		return s
	}
	met := 0
	for range 20_000 {
		outer, err := CompileAgentPattern("", text([]string{"a", "b", "/", "*", "**", "?", "{a,b}", "[a-b]"}))
		if err != nil {
			continue
		}
		inner, err := CompileAgentPattern("", text([]string{"a", "b", "/", "*", "**", "?", "{a,b/}", "[!a]"}))
		if err != nil || !outer.Covers(inner.String()) {
			continue
		}
		for range 20 {
			id := text([]string{"a", "b", "/", "*", "c"})
			if inner.Matches(id) {
				met++
				if !outer.Matches(id) {
					t.Fatalf("%s covers %s, which matches %q, but %s does not", outer, inner, id, outer)
				}
			}
		}
	}
	if met < 1000 {
		t.Errorf("%d ids matched a covered pattern, want at least 1000", met)
	}
}
