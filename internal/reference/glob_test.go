package reference

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gobwas/glob"
)

// TestGlobAsOPA checks that the matcher agrees with the library behind OPA's glob.match.
func TestGlobAsOPA(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "b", "/", "*", "**", "?", "[ab]", "[!a]", "[a-c]", "{a,b/}", "{a,{b*,}}", `\*`, "é", ",", "[", "{", "]", "}"}
	random := func(from []string, n int) (s string) {
		for range rng.IntN(n) {
			s += from[rng.IntN(len(from))]
		}
		return s
	}
	compiled, matched := 0, 0
	for range 50_000 {
		pattern, s := random(letters, 7), random([]string{"a", "b", "c", "/", "é", "*", ","}, 7)
		want, wantErr := glob.Compile(pattern, '/')
		alternatives, tokens, err := parseOPA(pattern)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("parseOPA(%q) = %v, want %v", pattern, err, wantErr)
		}
		if err != nil {
			continue
		}
		compiled++
		got := slices.ContainsFunc(alternatives, func(a text) bool { return match(a, tokens, text(s), matching{}) })
		if got != want.Match(s) {
			t.Fatalf("match(%q, %q) = %v, want %v", pattern, s, got, !got)
		}
		if got {
			matched++
		}
	}
	if compiled < 10_000 || matched < 500 {
		t.Errorf("only %d patterns compiled, only %d matched", compiled, matched)
	}
}
