package rego

import (
	"strings"
	"testing"

	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// TestDecision_Bounds_GlobsTakeLinearTime: "run with a cost limit, counted in steps". OPA's matcher
// takes time exponential in the alternatives of a glob. With OPA's matcher some of these conditions
// do not end.
func TestDecision_Bounds_GlobsTakeLinearTime(t *testing.T) {
	for pattern, texts := range map[string][2]string{
		strings.Repeat("{a,aa}", 8) + "b":        {strings.Repeat("a", 12) + "b", strings.Repeat("a", 3999) + "bb"},
		strings.Repeat("{?,??}", 8) + "b":        {strings.Repeat("é", 12) + "b", strings.Repeat("ab", 2000)},
		"**{aa,bb,cc,dd,a,b,c,d}":                {"x/y/dd", strings.Repeat("/", 4000)},
		"**{a,b}":                                {"x/y/b", strings.Repeat("a/", 2000)},
		"{aaaa*,aaa}{a,aa}{b,c}":                 {"aaaaxac", strings.Repeat("a", 4000)},
		"a**{a,b}b":                              {"a/x/ab", strings.Repeat("a", 4000)},
		"**" + strings.Repeat("[a-c]", 50) + "x": {strings.Repeat("b", 60) + "x", strings.Repeat("a", 4000)},
	} {
		c, err := CompileCondition(`glob.match(` + condition.Quote(pattern) + `, ["/"], input.intent.metadata.env)`)
		if err != nil {
			t.Errorf("CompileCondition(%q) = %v", pattern, err)
			continue
		}
		for i, text := range texts {
			var work condition.Work
			in := sampleInput()
			in.Work = &work
			in.Intent.Metadata["env"] = text
			before := work.Left()
			got, err := c.Match(in)
			if want := i == 0; got != want || err != nil {
				t.Errorf("glob.match(%q, %d bytes) = %v, %v, want %v", pattern, len(text), got, err, want)
			}
			if used := before - work.Left(); used < len(text) {
				t.Errorf("glob.match(%q, %d bytes) was charged %d steps", pattern, len(text), used)
			}
		}
	}
}

func TestCompileCondition_RefusesGlobsThatOPAMatchesSlowly(t *testing.T) {
	for source, want := range map[string]string{
		`glob.match("{a,b}", [], input.intent.resource)`:                                  "a pattern with alternatives needs the delimiters",
		`glob.match("**{a,b}", null, input.intent.resource)`:                              "a pattern with alternatives needs the delimiters",
		`glob.match("{a,b}", ["/", "."], input.intent.resource)`:                          "a pattern with alternatives needs the delimiters",
		`glob.match("a*", [input.intent.metadata.d], input.intent.resource)`:              "the delimiters must be a constant",
		`glob.match("k8s/[", ["/"], input.intent.resource)`:                               "1:12: glob.match: ",
		`glob.match("k8s/[", [], input.intent.resource)`:                                  "1:12: glob.match: the pattern is no glob: ",
		`glob.match("k8s.[z-a]", ["."], input.intent.resource)`:                           "1:12: glob.match: the pattern is no glob: ",
		`glob.match("k8s[", null, input.intent.resource)`:                                 "1:12: glob.match: the pattern is no glob: ",
		`d := ["/"]; glob.match("a*", d, input.intent.resource)`:                          "the delimiters must be a constant",
		`glob.match("` + strings.Repeat("{a,b}", 30) + `", ["/"], input.intent.resource)`: "1:12: glob.match: ",
	} {
		if _, err := CompileCondition(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CompileCondition(%s) = %v, want %q", source, err, want)
		}
	}
	must.Get(CompileCondition(`glob.match("a.*", ["."], input.intent.resource)`))(t)
}
