package rego

import (
	"fmt"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/glob"
	"writ.example/writ/internal/must"
)

// matcher calls OPA's glob.match with "/" as the delimiter.
type matcher struct{ question *prepared }

func newMatcher(t testing.TB) matcher {
	t.Helper()
	m := ast.MustParseModule("package g\n\nmatch := glob.match(input.pattern, [\"/\"], input.s)")
	c := must.Get(compile(map[string]*ast.Module{"g": m}, map[string]any{}))(t)
	p := must.Get(prepare(c, ast.MustParseRef("data.g.match"), 1000))(t)
	return matcher{p}
}

func (m matcher) match(t testing.TB, pattern, s string) bool {
	t.Helper()
	v, err := m.question.ask(ast.NewObject(
		ast.Item(ast.StringTerm("pattern"), ast.StringTerm(pattern)), ast.Item(ast.StringTerm("s"), ast.StringTerm(s)),
	), inTime(time.Now, time.Minute))
	if err != nil {
		t.Fatalf("glob.match(%q, [\"/\"], %q): %v", pattern, s, err)
	}
	return v.Compare(ast.Boolean(true)) == 0
}

// TestDecision_GlobsAreOPAs checks that writ's globs match as OPA's glob.match does with "/" as the
// delimiter.
func TestDecision_GlobsAreOPAs(t *testing.T) {
	opa := newMatcher(t)
	tests := []struct {
		pattern, s string
		want       bool
	}{
		{"a/*", "a/b", true}, {"a/*", "a/", true}, {"a/*", "a/b/c", false}, {"*", "a", true}, {"*", "a/b", false}, {"*", "", true},
		{"**", "a/b/c", true}, {"**", "", true}, {"a/**", "a/b/c", true}, {"a/**", "a", false}, {"a/**", "a/", true}, {"**/c", "a/b/c", true}, {"**/c", "c", false},
		{"a?c", "abc", true}, {"a?c", "a/c", false}, {"a?c", "ac", false}, {"a?c", "aéc", true},
		{"[a-c]x", "bx", true}, {"[a-c]x", "dx", false}, {"[!a-c]x", "dx", true}, {"[abc]x", "cx", true}, {"[!a]x", "/x", true},
		{"{a,b}/c", "b/c", true}, {"{a,b}/c", "c/c", false}, {"{a,b{c,d}}x", "bdx", true}, {"{a*,**}x", "q/wx", true}, {"{a,}x", "x", true},
		{`a\*b`, "a*b", true}, {`a\*b`, "axb", false}, {"a.b", "a.b", true}, {"a.b", "axb", false}, {"a*b*c", "a1b2c", true}, {"a*b*c", "a/b2c", false},
		{"x,y", "x,y", true}, {"*.exe", ".exe", true}, {"a**b", "a/x/b", true}, {"*a*", "bab", true}, {"prod/*/db", "prod//db", true},
	}
	for _, tt := range tests {
		globs, err := glob.CompileSet([]string{tt.pattern})
		if err != nil {
			t.Errorf("CompilePlainGlobs(%q): %v", tt.pattern, err)
			continue
		}
		ours, theirs := globs.Match(tt.s) == 0, opa.match(t, tt.pattern, tt.s)
		if ours != tt.want || theirs != tt.want {
			t.Errorf("Match(%q, %q) = %v, glob.match = %v, want %v", tt.pattern, tt.s, ours, theirs, tt.want)
		}
	}
}

// TestGlobs_AgreeWithOPAOnRandomPatterns checks that random patterns match the same random strings
// in writ and in OPA. It leaves out patterns that the engine refuses.
func TestGlobs_AgreeWithOPAOnRandomPatterns(t *testing.T) {
	opa := newMatcher(t)
	g := newGenerator(1)
	compared, matched := 0, 0
	for range 1500 {
		pattern := g.text(7, "a", "b", "/", "*", "**", "?", "[ab]", "[!a]", "{a,b}", "{a*,/b}", `\*`, ".", "{,b}", "[a-b]")
		globs, err := glob.CompileSet([]string{pattern})
		if err != nil {
			continue
		}
		for range 10 {
			s := g.text(7, "a", "b", "/", "*", ".", "c", "é")
			ours, theirs := globs.Match(s) == 0, opa.match(t, pattern, s)
			if ours != theirs {
				t.Errorf("Match(%q, %q) = %v, glob.match = %v", pattern, s, ours, theirs)
			}
			compared++
			if ours {
				matched++
			}
		}
	}
	if compared < 10000 || matched < compared/50 {
		t.Errorf("compared %d, of which %d matched: too few", compared, matched)
	}
}

// text joins at most most of words. A word may occur several times.
func (g *generator) text(most int, words ...string) string {
	s := ""
	for range g.r.IntN(most + 1) {
		s = fmt.Sprint(s, g.one(words...))
	}
	return s
}
