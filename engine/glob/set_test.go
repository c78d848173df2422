package glob

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/glob"

	"writ.example/writ/engine/resource"
)

func mustSet(t testing.TB, patterns ...string) *List {
	t.Helper()
	s, err := CompileSet(patterns)
	if err != nil {
		t.Fatalf("CompileSet(%q): %v", patterns, err)
	}
	return s
}

// TestDecision_Globs_Dialect checks the dialect of patterns, which is OPA's, with its surprises.
func TestDecision_Globs_Dialect(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		match   []string
		reject  []string
	}{
		{"prod/*", []string{"prod/db", "prod/"}, []string{"prod", "prod/db/users", "x/prod/db"}},
		{"prod/**", []string{"prod/db", "prod/db/users", "prod/"}, []string{"prod", "production/db"}},
		{"**/secret", []string{"a/secret", "a/b/secret", "/secret"}, []string{"secret", "a/secrets"}},
		{"a/**/b", []string{"a/x/b", "a/x/y/b", "a//b"}, []string{"a/b"}},
		{"a?c", []string{"abc", "aéc"}, []string{"ac", "a/c", "abbc"}},
		{"[a-c]x", []string{"ax", "cx"}, []string{"dx", "x"}},
		{"[!a-c]x", []string{"dx", "/x"}, []string{"ax"}},
		{"[pP][äÄ]", []string{"pä", "Pä", "pÄ"}, []string{"qä", "pa"}},
		{"[!pP]x", []string{"qx"}, []string{"px", "Px"}},
		{"[abc]x", []string{"ax"}, []string{"dx"}},
		{"{prod,dr}/*", []string{"prod/a", "dr/a"}, []string{"x/a", "prod,dr/a"}},
		{"a{,b}", []string{"a", "ab"}, []string{"abb"}},
		{"{a,{b,c}d}e", []string{"ae", "bde", "cde"}, []string{"be", "ade"}},
		{"{a,[b}]}", []string{"a", "b", "}"}, []string{"c"}},
		{`a\*b`, []string{"a*b"}, []string{"axb"}},
		{`{a\,b,c}`, []string{"a,b", "c"}, []string{"a", "b"}},
		{"a,b", []string{"a,b"}, []string{"a", "b"}},
		{"*", []string{"", "a"}, []string{"a/b"}},
		{"**", []string{"", "a", "a/b", "a\nb"}, nil},
		{"***", []string{"a/b"}, nil},
		{"*a*b*c", []string{"abc", "xaxbxc"}, []string{"ab/c", "acb"}},
		{"**a*b/**", []string{"x/axb/", "ab/x"}, []string{"a/b/x", "xaxb"}},
	} {
		t.Run(tt.pattern, func(t *testing.T) {
			g := mustSet(t, tt.pattern)
			for _, s := range tt.match {
				if g.Match(s) != 0 {
					t.Errorf("%q does not match %q, want a match", tt.pattern, s)
				}
			}
			for _, s := range tt.reject {
				if g.Match(s) != -1 {
					t.Errorf("%q matches %q, want none", tt.pattern, s)
				}
			}
		})
	}
}

// TestSet_AgreesWithTheLibrary compares patterns in their normal form with the library that OPA
// uses. Both must match the same texts, however this package compiles a pattern.
func TestSet_AgreesWithTheLibrary(t *testing.T) {
	patterns := []string{
		"*", "**", "?", "a*", "*a", "a*b", "*a*", "**a", "a**", "**a**", "a/*/b", "a/**/b", "*a*b", "*/*/a",
		"**/*a*/b", "{a,b}*", "{a*,*b}a", "*{a,b}*", "[ab]*[!a]", "a?*?b", "{,a}{a,}a", "**{a,ab}*b", "[ab/]*", "{*,a}*b", "{*a,**}{*,**}b",
	}
	for _, pattern := range patterns {
		library := glob.MustCompile(pattern, '/')
		g := mustSet(t, pattern)
		forEachString("ab/", 6, func(s string) {
			if got, want := g.Match(s) == 0, library.Match(s); got != want {
				t.Errorf("%q matches %q = %t, want %t", pattern, s, got, want)
			}
		})
	}
}

func forEachString(alphabet string, n int, f func(string)) {
	var walk func(prefix string)
	walk = func(prefix string) {
		f(prefix)
		if len(prefix) == n {
			return
		}
		for i := range len(alphabet) {
			walk(prefix + alphabet[i:i+1])
		}
	}
	walk("")
}

// TestSet_NoPatternIsSlow tests patterns on which the glob library takes polynomial or exponential
// time. This package must be fast for them.
func TestSet_NoPatternIsSlow(t *testing.T) {
	for _, pattern := range []string{
		"*a*a*a*a*a*a*a*a*b?",
		"**a**a**a**a**a**b?",
		"*?*?*?*?*?*?x?",
		strings.Repeat("*", 500) + "b?",
		strings.Repeat("*a", maxWildcards-1) + "b?",
		strings.Repeat("{a*,", maxWildcards/2-1) + "b" + strings.Repeat("}", maxWildcards/2-1) + "b?",
		strings.Repeat("{a,aa}", 8) + "b?",
		"{*a,*aa,**a}{*a,*aa,**a}{*a,*aa,**a}b?",
	} {
		g := mustSet(t, pattern)
		start := time.Now()
		if got := g.Match(strings.Repeat("a", resource.MaxLength)); got != -1 {
			t.Errorf("%.20q matches only a, want none", pattern)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%.20q took %v, want well under a second", pattern, took)
		}
	}
}

func TestSet_MatchDoesNotAllocate(t *testing.T) {
	g := mustSet(t, "https://*.example.com/**", "**/*secret*/**", "{a,b}/[a-z]*", "prod/*")
	for _, s := range []string{"https://a.example.com/x", "a/b/my-secret-x/c", "b/x", "none/of/these"} {
		g.Match(s)
		if n := testing.AllocsPerRun(200, func() { g.Match(s) }); n != 0 {
			t.Errorf("Match(%q) allocates %v times, want 0", s, n)
		}
	}
}

// TestSet_ListsAgreeWithTheLibrary puts many patterns into one automaton. They must match the same
// texts as each pattern alone in the library that OPA uses.
func TestSet_ListsAgreeWithTheLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "é", "/", "*", "**", "?", "[ab]", "[!a]", "[à-ü]", "[!à-ü]", "[!/]", "[!a-c]", "a*", "/**/",
		"{a,b}", "{a,}", "{,*}", "{a*,**/b}", "{a,{b,?x}}", "{*/,a}", `\*`, `\{`, `\\`, "\U0001F600"}
	text := func(from []string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(from[rng.IntN(len(from))])
		}
		return b.String()
	}
	for range 300 {
		var patterns []string
		var library []*glob.Pattern
		for len(patterns) < 40 {
			pattern := text(parts, 1+rng.IntN(8))
			if strings.Contains(pattern, "***") {
				continue // the library reads such a run of stars differently
			}
			compiled, err := glob.Compile(pattern, '/')
			if err != nil {
				continue
			}
			if _, err := CompileSet([]string{pattern}); err == nil {
				patterns, library = append(patterns, pattern), append(library, compiled)
			}
		}
		g, err := CompileSet(patterns)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			s := text([]string{"a", "b", "é", "/", "ab", "x", "*", "{", `\`, "\U0001F600"}, rng.IntN(9))
			want := -1
			for i := len(library) - 1; i >= 0; i-- {
				if library[i].Match(s) {
					want = i
				}
			}
			if got := g.Match(s); got != want {
				t.Fatalf("Match(%q) = %d, want %d; patterns %q", s, got, want, patterns)
			}
		}
	}
}

// TestSet_ClassOfBothCases checks that a class matches each of its characters, even if they are the
// two cases of one letter.
func TestSet_ClassOfBothCases(t *testing.T) {
	for _, class := range []string{"[aA]", "[Aa]", "[kK]", "[sS]", "[éÉ]", "[ßẞ]", "[σςΣ]", "[ǅǄǆ]", "[aAb]", "[!aA]", "[а]"} {
		want := glob.MustCompile("x"+class+"*/**", '/')
		got, err := CompileSet([]string{"x" + class + "*/**"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range "aAbBkKKsSſéÉßẞσςΣǅǄǆа" {
			if s := "x" + string(r) + "y/z"; (got.Match(s) >= 0) != want.Match(s) {
				t.Errorf("%s matches %q = %v, want %v", class, s, !want.Match(s), want.Match(s))
			}
		}
	}
}
