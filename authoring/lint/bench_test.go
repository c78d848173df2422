package lint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
)

// manyRules returns n rules, as a large organization has. The rules differ by team, action,
// resource, cost and metadata, and have three forms.
func manyRules(n int) []engine.Rule {
	rules := make([]engine.Rule, n)
	for i := range rules {
		team, kind := i%50, i/50
		c := fmt.Sprintf(`{"action_type":"team%d.act%d","resource":"teams/%d/%d/**","cost.amount_minor":{"$gt":%d},"metadata.env":{"$in":["prod","dr"]}}`, team, kind%20, team, kind, i)
		switch i % 5 {
		case 1:
			c = fmt.Sprintf(`{"cel":"intent.action_type == 'team%d.act%d' && intent.cost.amount_minor > %d"}`, team, kind%20, i)
		case 2:
			c = fmt.Sprintf(`{"all":[{"field":"action_type","op":"glob","value":"team%d.*"},{"field":"resource","op":"glob","value":["teams/%d/%d/**","shared/%d/*"]}]}`, team, team, kind, i)
		case 3:
			c = fmt.Sprintf(`{"resource":{"$glob":"teams/%d/%d/*.key"}}`, team, kind)
		}
		rules[i] = engine.Rule{
			ID: fmt.Sprintf("r%04d", i), Name: fmt.Sprintf("rule %d", i), Condition: c, Priority: int64(100 * (1 + i%3)), IsActive: true, CreatedAt: time.Unix(int64(i), 0),
			Action: `{"decision":"` + [...]string{"deny", "approval_required", "allow", "deny"}[i%4] + `"}`,
		}
	}
	return rules
}

func BenchmarkRules(b *testing.B) {
	for _, n := range []int{100, 1000, 4000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			rules := compile(b, manyRules(n))
			b.ReportAllocs()
			for b.Loop() {
				if len(lint.Rules(rules)) == 0 {
					b.Fatal("no warnings")
				}
			}
		})
	}
}

func BenchmarkPolicy(b *testing.B) {
	p := &engine.ActionPolicy{AllowedActionTypes: []string{"*"}}
	for i := range 1000 {
		p.AllowedResourcePatterns = append(p.AllowedResourcePatterns, fmt.Sprintf("https://api%d.example.com/v1/%s/**", i%40, strings.Repeat("x", i%30)))
		p.BlockedResourcePatterns = append(p.BlockedResourcePatterns, fmt.Sprintf("teams/%d/*/secrets/**", i%900))
		p.DeniedActionTypes = append(p.DeniedActionTypes, fmt.Sprintf("team%d.act%d", i%100, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(lint.Policy(p)) == 0 {
			b.Fatal("no warnings")
		}
	}
}
