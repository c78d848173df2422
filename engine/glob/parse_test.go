package glob

import (
	"reflect"
	"testing"
)

// FuzzStarred checks that a pattern of literals, stars and question marks has the units that the glob library's own
// lexer gives it.
func FuzzStarred(f *testing.F) {
	for _, pattern := range []string{
		"", "a", "*", "**", "***", "****", "a*b", "a**b*", "?", "*?*", "a,b", "!a-b", "https://*.example.com/**", "é*世",
		"a?,*", "**?**", "\uFFFD*",
	} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		got, problem := parsePattern(pattern)
		want, refused := [][]unit(nil), checkPattern(pattern)
		if refused == "" {
			want, refused = expand(pattern)
		}
		if problem != refused || !reflect.DeepEqual(got, want) {
			t.Errorf("parsePattern(%q) = %v, %q; expand gives %v, %q", pattern, got, problem, want, refused)
		}
	})
}
