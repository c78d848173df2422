package glob

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"writ.example/writ/engine/resource"
)

func TestShape_Covers(t *testing.T) {
	for _, tc := range []struct {
		by, pattern    string
		blocks, allows bool
	}{
		{"prod/**", "prod/*", true, true},
		{"prod/**", "prod/secrets/**", true, true},
		{"prod/**", "prod/[a-c]/x", true, true},
		{"prod/*", "prod/**", false, false},
		{"prod/*", "prod/a,b", true, false}, // a * of an allowance ends at a comma
		{"**", "mailto:legal@*", true, true},
		{"prod/{a,b}/**", "prod/a/x", true, true},
		{"prod/a/**", "prod/{a,b}/x", false, false},
		{"prod/{[a-z],*}", "prod/[b-d]", true, true},
		{"prod/[a-d]", "prod/[b-z]", false, false},
		{"prod/?", "prod/[b-z]", false, false}, // the text prod/[b-z] is five letters
		{"https://**", "https://api.example.com/v1/*", true, true},
		{"https://api.example.com/**", "https://API.example.com/v1/*", false, true}, // a block also compares the raw text
		{"https://api.example.com/**", "https://api.example.com/v1/*", true, true},
		{"*2F", "*[2]F", false, false},
		{"*[2]F", "*2F", false, false}, // *2F cuts the escape %2F in two
		{"**", "*2F", true, true},
		{"a*/*b", "a**b", false, false},
		{"/etc/**", "/etc/**", true, true},
	} {
		for side, want := range map[resource.Side]bool{resource.ForBlock: tc.blocks, resource.ForAllow: tc.allows} {
			if got := ShapeOf(tc.by, side).Covers(ShapeOf(tc.pattern, side)); got != want {
				t.Errorf("%s covers %s (blocks %v) = %v, want %v", tc.by, tc.pattern, side, got, want)
			}
		}
	}
}

// TestShape_IsTrueOfResources checks that Covers and Beats are never wrongly true. If one pattern
// covers or beats another, it must match all resources that the other pattern matches.
func TestShape_IsTrueOfResources(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not used for secrets
	one := func(words ...string) string { return words[r.IntN(len(words))] }
	text := func(words ...string) string {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			b.WriteString(one(words...))
		}
		return b.String()
	}
	pattern := func() string {
		return one("", "", "prod/", "https://a.example/", "mailto:", "C:\\") +
			text("a", "b", "/", "*", "**", "?", "[ab]", "[!a]", "{a,b*}", "2F", "%2F", "%20", ",", "@", "é", "A", ".")
	}
	fill := func(pattern string) string {
		s := strings.NewReplacer("**", one("", "a/b", "a", "/"), "*", one("", "a", "%2F", "a,b", "2", "é"), "?", one("a", "%3F", "é"),
			"[ab]", one("a", "b"), "[!a]", one("b", "%2F", "é"), "{a,b*}", one("a", "ba")).Replace(pattern)
		if r.IntN(3) == 0 && s != "" {
			i := r.IntN(len(s))
			s = s[:i] + one("a", "/", "%2F", "A", "?", "") + s[i:]
		}
		return s
	}
	n := 8_000
	if os.Getenv("WRIT_SOAK") != "" {
		n *= 20
	}
	covered, beaten, met := 0, 0, 0
	for range n {
		p, q := pattern(), pattern()
		if r.IntN(2) == 0 {
			q = p[:r.IntN(len(p)+1)] + one("*", "**", "**")
		}
		for _, side := range []resource.Side{resource.ForBlock, resource.ForAllow} {
			covers, beats := ShapeOf(q, side).Covers(ShapeOf(p, side)), side == resource.ForBlock && ShapeOf(q, resource.ForBlock).Beats(ShapeOf(p, resource.ForAllow))
			if !covers && !beats {
				continue
			}
			of, by, allows := mustList(t, side, p), mustList(t, side, q), mustList(t, resource.ForAllow, p)
			for range 10 {
				s := fill(p)
				readings, err := resource.Read(s)
				if err != nil {
					continue
				}
				if covers {
					covered++
					if of.Holds(&readings) && !by.Holds(&readings) {
						t.Fatalf("%q covers %q (blocks %v), but not of %q", q, p, side, s)
					}
				}
				if !beats {
					continue
				}
				beaten++
				for i := range readings.Len(resource.ForAllow) {
					if allows.matchEvery(readings.At(resource.ForAllow, i), readings.Stops()) {
						met++
						if !by.Holds(&readings) {
							t.Fatalf("%q beats %q, but not of %q", q, p, s)
						}
					}
				}
			}
		}
	}
	if covered < n/4 || beaten < n/4 || met < n/10 {
		t.Errorf("asked %d covered, %d beaten, of which %d were allowed: too few", covered, beaten, met)
	}
}
