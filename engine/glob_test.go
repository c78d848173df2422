package engine

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/glob"
)

func mustGlobs(t testing.TB, patterns ...string) *Globs {
	t.Helper()
	g, err := CompileGlobs(patterns)
	if err != nil {
		t.Fatalf("CompileGlobs(%q): %v", patterns, err)
	}
	return g
}

// TestDecision_Globs_Dialect holds the dialect, which is OPA's, and its
// surprises.
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
			g := mustGlobs(t, tt.pattern)
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

// TestDecision_Globs_PatternsMatchWhateverTheirSpelling holds that a pattern in
// a spelling that no normal form has matches the normal forms that it means,
// and no others.
func TestDecision_Globs_PatternsMatchWhateverTheirSpelling(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		match   []string
		reject  []string
	}{
		{"https://EXAMPLE.com:443/%7Ea", []string{"https://example.com/~a"}, []string{"https://example.com/~A"}},
		{"HTTPS://example.com", []string{"https://example.com/"}, []string{"https://example.com/a"}},
		{"https://example.com./**", []string{"https://example.com/a/b"}, nil},
		{"https://*.Example.com.:443/**", []string{"https://a.example.com/x"}, []string{"https://a.example.com:444/x"}},
		{"https://example.com:*/x", []string{"https://example.com/x", "https://example.com:8443/x"}, []string{"https://example.com/y"}},
		{"https://example.com:84*/x", []string{"https://example.com:8443/x"}, []string{"https://example.com/x"}},
		{"*://example.com:443/x", []string{"https://example.com/x", "wss://example.com/x", "http://example.com:443/x"}, []string{"http://example.com/x"}},
		{"http{,s}://Example.com/**", []string{"http://example.com/a", "https://example.com/a"}, []string{"ftp://example.com/a"}},
		{"https://{a,B}.Example.com/**", []string{"https://a.example.com/", "https://b.example.com/"}, []string{"https://c.example.com/"}},
		{"https://bücher.example/**", []string{"https://xn--bcher-kva.example/x"}, nil},
		{"https://*.BÜCHER.example/**", []string{"https://a.xn--bcher-kva.example/x"}, nil},
		{"https://example。com/**", []string{"https://example.com/x"}, nil},
		{"https://0x7f.1/**", []string{"https://127.0.0.1/x"}, nil},
		{`https://\[::FFFF:127.0.0.1\]/**`, []string{"https://127.0.0.1/x"}, nil},
		{`http://\[0::1\]:80/**`, []string{"http://[::1]/x"}, nil},
		{"https://h/é?b", []string{"https://h/%C3%A9xb"}, nil},
		{"https://h/a b/*", []string{"https://h/a%20b/c"}, nil},
		{"https://h/%c3%a9", []string{"https://h/%C3%A9"}, nil},
		{"https://h/%2fx", []string{"https://h/%2Fx"}, []string{"https://h/x"}},
		{"https://h/a%40b", []string{"https://h/a@b", "https://h/a%40b"}, nil},
		{`https://h/a\?b=c%2fd`, []string{"https://h/a?b=c%2Fd"}, nil},
		{`a\\b\\*`, []string{"a/b/c"}, nil},
		{`C:\\Windows\\**`, []string{"c:/Windows/x"}, []string{"c:/windows/x"}},
		{"Repo:Main", []string{"repo:Main"}, []string{"repo:main"}},
		{"s3://Bucket/**", []string{"s3://bucket/Key"}, []string{"s3://bucket2/Key"}},
		{"jdbc:postgres://Host:5432/**", []string{"jdbc:postgres://host/db"}, nil},
		{"mailto:*@Example.com", []string{"mailto:bob@example.com"}, []string{"mailto:bob@example.org"}},
		{"*@Example.com", []string{"bob@example.com"}, []string{"bob@example.com.evil"}},
		{"file://localhost/C:/**", []string{"file:///c:/x"}, nil},
		{"**.Example.com/**", []string{"https://a.example.com/x", "http://b.example.com/"}, []string{"https://evil/a.example.com/x"}},
		{"**.Example.com", []string{"https://a.example.com/"}, []string{"https://evil/a.example.com"}},
		{"**Secret**", []string{"https://secret.example/", "https://h/a/Secret"}, []string{"https://h/secret"}},
		{"**:443/**", []string{"https://h/x", "http://h:443/x"}, []string{"http://h/x"}},
		{"https://**Admin/x", []string{"https://superadmin/x", "https://h/Admin/x"}, []string{"https://h/admin/x"}},
		{"file://D|/**", []string{"file:///d:/x"}, nil},
	} {
		t.Run(tt.pattern, func(t *testing.T) {
			g := mustGlobs(t, tt.pattern)
			for _, s := range tt.match {
				r, err := ReadResource(s)
				if err != nil || r.Normal() != s {
					t.Fatalf("ReadResource(%q).Normal() = %q, %v, want itself", s, r.Normal(), err)
				}
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

func TestDecision_Globs_PatternThatDoesNotCompileNamesItsIndex(t *testing.T) {
	for name, pattern := range map[string]string{
		"empty":                         "",
		"too long":                      strings.Repeat("a", maxPatternLength+1),
		"invalid UTF-8":                 "a\xff",
		"control character":             "a\x00b",
		"white space":                   " a",
		"invisible character":           "a\u200bb",
		"open brace":                    "{a,b",
		"open class":                    "[a",
		"empty class":                   "[]",
		"range upside down":             "[z-a]",
		"trailing backslash":            `a\`,
		"Windows path":                  `C:\Windows\**`,
		"negation of another dialect":   "[^a]*",
		"too many alternatives":         strings.Repeat("{a,b}", 9),
		"too many nested alternatives":  strings.Repeat("{a,", 10) + "b" + strings.Repeat("}", 10),
		"too many wildcards":            strings.Repeat("*a", maxStars+1),
		"dot segment":                   "a/./b",
		"several open domains":          "a@B*,c@D*",
		"dot-dot segment":               "/a/../b",
		"leading dot-dot segment":       "../b",
		"trailing dot-dot segment":      "https://h/..",
		"escaped dot segment":           "a/%2e%2E/b",
		"dot-dot in an alternative":     "a/{x,..}/b",
		"dot segment with a parameter":  "a/..;x/b",
		"doubled slashes":               "a//b",
		"leading doubled slashes":       "//host/**",
		"doubled slashes in a URL":      "https://h//b",
		"three slashes after a scheme":  "https:///h/b",
		"double encoding":               "a%2541",
		"incomplete escape":             "a%4",
		"escape split by a wildcard":    "a%4*",
		"escaped control character":     "a%00",
		"scheme without slashes":        "https:example.com/**",
		"user info":                     "https://user@example.com/**",
		"user info and wildcard":        "https://*@example.com/**",
		"port that is no number":        "https://example.com:http/**",
		"invalid host":                  "https://a b/**",
		"host that is no address":       "https://256.1.1.1/**",
		"empty label":                   "https://a..b/**",
		"no host":                       "https:///**",
		"IPv6 without escapes":          "http://[::1]/**",
		"upper-case class in a host":    "https://[A-Z]*.com/**",
		"host with an escaped wildcard": "https://%61*/**",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := CompileGlobs([]string{"fine/**", pattern})
			var refused *PatternError
			if !errors.As(err, &refused) || refused.Index != 1 || refused.Problem == "" {
				t.Errorf("CompileGlobs(fine, %q) = %v, want a PatternError for index 1", pattern, err)
			}
		})
	}
}

// TestDecision_Resources_BlockedAndAllowed holds what passes: a block must not
// reach further than it says, an allowance no further than every reading.
func TestDecision_Resources_BlockedAndAllowed(t *testing.T) {
	for _, tt := range []struct {
		name, pattern, resource string
		blocked, allowed        bool
	}{
		{"itself", "https://example.com/admin/**", "https://example.com/admin/x", true, true},
		{"other host", "https://example.com/**", "https://example.org/x", false, false},
		{"longer host", "https://example.com/**", "https://example.com.evil/x", false, false},
		{"host as user info", "https://example.com/**", "https://example.com@evil/x", false, false},
		{"host in a path", "https://example.com/**", "https://evil/example.com/x", false, false},
		{"host in a query", "https://example.com/**", "https://evil/?https://example.com/x", false, false},
		{"host in a fragment", "**example.com/x", "https://evil/#example.com/x", true, false},
		{"other port", "https://example.com/**", "https://example.com:8443/x", false, false},
		{"other scheme", "https://example.com/**", "http://example.com/x", false, false},
		{"path in other case", "https://example.com/admin", "https://example.com/ADMIN", false, false},
		{"longer segment", "https://example.com/admin", "https://example.com/administrator", false, false},
		{"query is another resource", "https://example.com/admin", "https://example.com/admin?x", false, false},
		{"directory is another resource", "/etc", "/etc/", false, false},
		{"left by dot segments", "/data/**", "/data/../etc/passwd", true, false},
		{"left by encoded dot segments", "/data/**", "/data/%2e%2e/etc/passwd", true, false},
		{"left by encoded slashes", "/data/**", "/data/..%2fetc/passwd", true, false},
		{"encoded slashes within", "/data/**", "/data/a%2fb", true, true},
		{"encoded slash in a segment", "/data/*", "/data/a%2fb", true, false},
		{"climbing", "data/**", "../data/x", true, false},
		{"suffix in a fragment", "**.pdf", "https://evil/x#.pdf", true, false},
		{"fragment of an allowed page", "https://h/**", "https://h/app#/route", true, true},
		{"encoded number sign", "https://h/a", "https://h/a%23b", false, false},
		{"encoded question mark", "https://h/a", "https://h/a%3Fb", false, false},
		{"logical name with a number sign", "issue", "issue#12", false, false},
		{"accent under a wildcard", "**/caf?", "https://h/caf%C3%A9", true, false},
		{"full-width look-alike", "https://h/admin", "https://h/\uff41dmin", true, false},
		{"Cyrillic look-alike", "https://h/admin", "https://h/\u0430dmin", false, false},
		{"composed and decomposed", "https://h/caf\u00e9", "https://h/cafe\u0301", true, false},
		{"decomposed and composed", "https://h/cafe\u0301", "https://h/caf\u00e9", true, true},
		{"escaped sub-delimiter", "/u/a@b", "/u/a%40b", true, false},
		{"escapes on either side", "/u/a%40b@c", "/u/a@b%40c", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := mustGlobs(t, tt.pattern)
			r, err := ReadResource(tt.resource)
			if err != nil {
				t.Fatalf("ReadResource(%q): %v", tt.resource, err)
			}
			if got := anyReading(g, &r); got != tt.blocked {
				t.Errorf("%q blocks %q = %t, want %t", tt.pattern, tt.resource, got, tt.blocked)
			}
			if got := everyNormal(g, &r); got != tt.allowed {
				t.Errorf("%q allows %q = %t, want %t", tt.pattern, tt.resource, got, tt.allowed)
			}
		})
	}
}

func TestGlobs_MatchReturnsTheFirstPattern(t *testing.T) {
	g := mustGlobs(t, "a/*", "https://EXAMPLE.com/**", "{a,b}/x", "b/**")
	for s, want := range map[string]int{"a/x": 0, "https://example.com/": 1, "b/x": 2, "b/y": 3, "c": -1, "": -1} {
		if got := g.Match(s); got != want {
			t.Errorf("Match(%q) = %d, want %d", s, got, want)
		}
	}
	if got := mustGlobs(t).Match("a"); got != -1 {
		t.Errorf("Match of no patterns = %d, want -1", got)
	}
}

// TestGlobs_NoPatternIsSlow holds that patterns on which the glob library takes
// polynomial or exponential time do not.
func TestGlobs_NoPatternIsSlow(t *testing.T) {
	for _, pattern := range []string{
		"*a*a*a*a*a*a*a*a*b?",
		"**a**a**a**a**a**b?",
		"*?*?*?*?*?*?x?",
		strings.Repeat("*", 500) + "b?",
		strings.Repeat("*a", maxStars) + "b?",
		strings.Repeat("{a,aa}", 8) + "b?",
		"{*a,*aa,**a}{*a,*aa,**a}{*a,*aa,**a}b?",
	} {
		g := mustGlobs(t, pattern)
		start := time.Now()
		if got := g.Match(strings.Repeat("a", MaxResourceLength)); got != -1 {
			t.Errorf("%.20q matches only a, want none", pattern)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%.20q took %v, want well under a second", pattern, took)
		}
	}
}

// TestCompileGlobs_RefusesWhatIsDearToCompile holds that no pattern takes time
// quadratic in its length to compile.
func TestCompileGlobs_RefusesWhatIsDearToCompile(t *testing.T) {
	for name, pattern := range map[string]string{
		"single characters": strings.Repeat("?", maxWildcards+1),
		"classes":           strings.Repeat("[ab]", maxWildcards+1),
		"nested URLs":       strings.Repeat("a:", 400) + "https://example.com/**",
	} {
		if _, err := CompileGlobs([]string{pattern}); err == nil {
			t.Errorf("CompileGlobs(%s) = nil, want it refused", name)
		}
	}
	for _, pattern := range []string{
		strings.Repeat("?", maxWildcards), strings.Repeat("[a-f]", 64) + "/*",
		"a:b:c:https://example.com/**",
	} {
		mustGlobs(t, pattern)
	}
}

// TestGlobs_AgreesWithTheLibrary holds that a pattern in its own normal form
// means what it means to the library that OPA uses, however it is compiled.
func TestGlobs_AgreesWithTheLibrary(t *testing.T) {
	patterns := []string{
		"*", "**", "?", "a*", "*a", "a*b", "*a*", "**a", "a**", "**a**", "a/*/b", "a/**/b", "*a*b", "*/*/a",
		"**/*a*/b", "{a,b}*", "{a*,*b}a", "*{a,b}*", "[ab]*[!a]", "a?*?b", "{,a}{a,}a", "**{a,ab}*b", "[ab/]*", "{*,a}*b", "{*a,**}{*,**}b",
	}
	for _, pattern := range patterns {
		library := glob.MustCompile(pattern, '/')
		g := mustGlobs(t, pattern)
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

func TestGlobs_MatchDoesNotAllocate(t *testing.T) {
	g := mustGlobs(t, "https://*.example.com/**", "**/*secret*/**", "{a,b}/[a-z]*", "prod/*")
	for _, s := range []string{"https://a.example.com/x", "a/b/my-secret-x/c", "b/x", "none/of/these"} {
		g.Match(s)
		if n := testing.AllocsPerRun(200, func() { g.Match(s) }); n != 0 {
			t.Errorf("Match(%q) allocates %v times, want 0", s, n)
		}
	}
}

// TestGlobs_SizeIsAboutWhatItTakes holds the estimate that bounds the cache
// within a factor of two of the heap's growth.
func TestGlobs_SizeIsAboutWhatItTakes(t *testing.T) {
	for name, patterns := range map[string][]string{
		"globs":       {"https://*.example.com/**", "prod/*/config", "https://hooks.slack.com/services/*"},
		"expressions": {"**/*secret*/**", "*a*b*c"},
		"literals":    {"prod/db", "https://example.com/a"},
	} {
		const copies = 500
		kept := make([]*Globs, copies)
		before := heapInUse()
		for i := range kept {
			kept[i] = mustGlobs(t, patterns...)
		}
		got, want := kept[0].Size(), (heapInUse()-before)/copies
		if got < want/2 || got > 2*want {
			t.Errorf("%s: Size() = %d, want about %d", name, got, want)
		}
		runtime.KeepAlive(kept)
	}
}

// heapInUse returns the bytes on the heap once pools are empty too, which
// takes two collections.
func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
