package glob

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"writ.example/writ/engine/resource"
)

func TestDecision_Globs_PatternThatDoesNotCompileNamesItsIndex(t *testing.T) {
	for name, pattern := range map[string]string{
		"empty":                         "",
		"too long":                      strings.Repeat("a", MaxLength+1),
		"invalid UTF-8":                 "a\xff",
		"control character":             "a\x00b",
		"white space":                   " a",
		"invisible character":           "a\u200bb",
		"open brace":                    "{a,b",
		"open class":                    "[a",
		"empty class":                   "[]",
		"range upside down":             "[z-a]",
		"trailing backslash":            `a\`,
		"negation of another dialect":   "[^a]*",
		"too many alternatives":         strings.Repeat("{a,b}", 9),
		"too many nested alternatives":  strings.Repeat("{", maxWildcards+1) + "b" + strings.Repeat("}", maxWildcards+1),
		"too many wildcards":            strings.Repeat("*a", maxWildcards+1),
		"dot-dot segment":               "/a/../b",
		"trailing dot-dot segment":      "https://h/..",
		"escaped dot segment":           "a/%2e%2E/b",
		"dot-dot in an alternative":     "a/{x,..}/b",
		"three slashes after a scheme":  "https:///h/b",
		"scheme without slashes":        "https:example.com/**",
		"port that is no number":        "https://example.com:http/**",
		"invalid host":                  "https://a b/**",
		"host that is no address":       "https://256.1.1.1/**",
		"empty label":                   "https://a..b/**",
		"no host":                       "https:///**",
		"upper-case class in a host":    "https://[A-Z]*.com/**",
		"host with an escaped wildcard": "https://%61*/**",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile([]string{"fine/**", pattern}, resource.ForBlock)
			var refused *PatternError
			if !errors.As(err, &refused) || refused.Index != 1 || refused.Problem == "" {
				t.Errorf("Compile(fine, %q) = %v, want a PatternError for index 1", pattern, err)
			}
		})
	}
}

// TestDecision_Resources_BlockedAndAllowed checks which resources a pattern blocks and allows. A
// block must not match more than its pattern says. An allowance must match every reading.
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
		{"a query hides no blocked path", "https://example.com/admin", "https://example.com/admin?x", true, false},
		{"a trailing slash hides no blocked path", "/etc", "/etc/", true, false},
		{"left by dot segments", "/data/**", "/data/../etc/passwd", true, false},
		{"left by encoded dot segments", "/data/**", "/data/%2e%2e/etc/passwd", true, false},
		{"left by encoded slashes", "/data/**", "/data/..%2fetc/passwd", true, false},
		{"encoded slashes within", "/data/**", "/data/a%2fb", true, true},
		{"encoded slash in a segment", "/data/*", "/data/a%2fb", true, false},
		{"climbing", "data/**", "../data/x", false, false},
		{"suffix in a fragment", "**.pdf", "https://evil/x#.pdf", true, false},
		{"fragment of an allowed page", "https://h/**", "https://h/app#/route", true, true},
		{"encoded number sign", "https://h/a", "https://h/a%23b", false, false},
		{"encoded question mark", "https://h/a", "https://h/a%3Fb", false, false},
		{"a number sign hides no blocked name", "issue", "issue#12", true, false},
		{"accent under a wildcard", "**/caf?", "https://h/caf%C3%A9", true, true},
		{"full-width look-alike", "https://h/admin", "https://h/\uff41dmin", true, false},
		{"Cyrillic look-alike", "https://h/admin", "https://h/\u0430dmin", false, false},
		{"composed and decomposed", "https://h/caf\u00e9", "https://h/cafe\u0301", true, false},
		{"decomposed and composed", "https://h/cafe\u0301", "https://h/caf\u00e9", true, false},
		{"escaped sub-delimiter", "/u/a@b", "/u/a%40b", true, false},
		{"escapes on either side", "/u/a%40b@c", "/u/a@b%40c", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := mustList(t, resource.ForBlock, tt.pattern)
			r, err := resource.Read(tt.resource)
			if err != nil {
				t.Fatalf("resource.Read(%q): %v", tt.resource, err)
			}
			if got := anyReading(g, &r); got != tt.blocked {
				t.Errorf("%q blocks %q = %t, want %t", tt.pattern, tt.resource, got, tt.blocked)
			}
			if got := mustList(t, resource.ForAllow, tt.pattern).Holds(&r); got != tt.allowed {
				t.Errorf("%q allows %q = %t, want %t", tt.pattern, tt.resource, got, tt.allowed)
			}
		})
	}
}

// TestCompile_RefusesWhatIsDearToCompile checks that patterns are refused if compiling them would
// take quadratic time.
func TestCompile_RefusesWhatIsDearToCompile(t *testing.T) {
	for name, pattern := range map[string]string{
		"single characters": strings.Repeat("?", maxWildcards+1),
		"classes":           strings.Repeat("[ab]", maxWildcards+1),
	} {
		if _, err := Compile([]string{pattern}, resource.ForBlock); err == nil {
			t.Errorf("Compile(%s) = nil, want it refused", name)
		}
	}
	for _, pattern := range []string{
		strings.Repeat("?", maxWildcards), strings.Repeat("[a-f]", 64) + "/*",
		"a:b:c:https://example.com/**",
	} {
		mustList(t, resource.ForBlock, pattern)
	}
}

// TestList_SizeIsAboutWhatItTakes checks that Size is within a factor of two of the memory that a
// list takes. Size bounds the cache of policies.
func TestList_SizeIsAboutWhatItTakes(t *testing.T) {
	for name, patterns := range map[string][]string{
		"globs":       {"https://*.example.com/**", "prod/*/config", "https://hooks.slack.com/services/*"},
		"expressions": {"**/*secret*/**", "*a*b*c"},
		"literals":    {"prod/db", "https://example.com/a"},
	} {
		const copies = 500
		kept := make([]*List, copies)
		before := heapInUse()
		for i := range kept {
			kept[i] = mustList(t, resource.ForBlock, patterns...)
		}
		got, want := kept[0].Size(), (heapInUse()-before)/copies
		if got < want/2 || got > 2*want {
			t.Errorf("%s: Size() = %d, want about %d", name, got, want)
		}
		runtime.KeepAlive(kept)
	}
}

// heapInUse returns the bytes on the heap after two collections. A sync.Pool is only empty after
// the second collection.
func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestList_MatchReturnsTheFirstPattern(t *testing.T) {
	g := mustList(t, resource.ForBlock, "a/*", "https://EXAMPLE.com/**", "{a,b}/x", "b/**")
	for s, want := range map[string]int{"a/x": 0, "https://example.com/": 1, "b/x": 2, "b/y": 3, "c": -1, "": -1} {
		if got := g.Match(s); got != want {
			t.Errorf("Match(%q) = %d, want %d", s, got, want)
		}
	}
	if got := mustList(t, resource.ForBlock).Match("a"); got != -1 {
		t.Errorf("Match of no patterns = %d, want -1", got)
	}
}
