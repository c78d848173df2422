package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// TestDecision_Globs_NoListIsSlow checks that a list is refused if it would take long to compile
// or to match. The error has the field, the index and the limit.
func TestDecision_Globs_NoListIsSlow(t *testing.T) {
	list := func(f func(i int) string) []string { return slicesOf(condition.MaxEntries, f) }
	for name, test := range map[string]struct {
		patterns []string
		want     string // of the message; empty: valid
	}{
		"many stars":       {list(func(i int) string { return strings.Repeat("*a", 28) + fmt.Sprint("b", i) }), "4096 characters"},
		"many supers":      {list(func(i int) string { return strings.Repeat("**a", 20) + fmt.Sprint("b", i) }), "4096 characters"},
		"nested prefixes":  {slicesOf(100, func(i int) string { return strings.Repeat("a", 1+i) + "*x*y" }), "4096 characters"},
		"not ASCII":        {list(func(i int) string { return fmt.Sprintf("**é%d*é**", i) }), "4096 characters"},
		"literals":         {list(func(int) string { return strings.Repeat("a/b", 300) }), "131072 characters"},
		"alternatives":     {list(func(i int) string { return fmt.Sprintf("h%d/{a,b}{c,d}{e,f}{g,h}{a,b}{c,d}{a,b}{h,k}/**", i) }), "131072 characters"},
		"ordinary":         {list(func(i int) string { return fmt.Sprintf("https://api%d.example.com/v1/*/accounts/**", i) }), ""},
		"distinct of many": {list(func(i int) string { return fmt.Sprintf("team-%03d/*/x/*/y/**/z", i) }), ""},
	} {
		p := ActionPolicy{
			PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20", Version: 1, OrganizationID: "o", AgentID: "*",
			AllowedActionTypes: []string{"*"}, BlockedResourcePatterns: test.patterns, Status: StatusActive,
			UpdatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		}
		err := p.Validate()
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: Validate = %v, want nil", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "policy.blocked_resource_patterns[") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Validate = %v, want the field with an index and %q", name, err, test.want)
		}
		if _, err := CompilePolicy(&p); err == nil {
			t.Errorf("%s: CompilePolicy = nil, want what Validate refuses refused", name)
		}
	}
}

// BenchmarkWorstPatterns compiles two of the most expensive valid lists, and evaluates the most
// expensive known resource against them.
func BenchmarkWorstPatterns(b *testing.B) {
	for name, patterns := range map[string][]string{
		"supers": slicesOf(4, func(i int) string { return strings.Repeat("**a", 20) + fmt.Sprint("b", i) }),
		"middle": slicesOf(420, func(i int) string { return fmt.Sprintf("**a%d/*/**", i) }),
		"wide":   slicesOf(98, func(i int) string { return fmt.Sprintf("**é%d*é**", i) }),
	} {
		doc := &ActionPolicy{
			PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20", Version: 1, OrganizationID: "o", AgentID: "*",
			AllowedActionTypes: []string{"*"}, AllowedResourcePatterns: patterns, BlockedResourcePatterns: patterns,
			Status: StatusActive, UpdatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		}
		b.Run(name+"/compile", func(b *testing.B) {
			for b.Loop() {
				if _, err := CompilePolicy(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
		p := must.Get(CompilePolicy(doc))(b)
		in := &Input{Intent: &Intent{AgentID: "a", ActionType: "x", Resource: "https://u@H/../" + strings.Repeat("aé%2fx/", 400) + "#frag"}}
		b.Run(name+"/evaluate", func(b *testing.B) {
			for b.Loop() {
				Evaluate(p, nil, in)
			}
		})
	}
}

func slicesOf(n int, f func(i int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = f(i)
	}
	return all
}
