package glob

import (
	"testing"

	"writ.example/writ/engine/resource"
)

func BenchmarkList(b *testing.B) {
	g := mustList(b, resource.ForBlock,
		"https://api.stripe.com/v1/**", "https://*.example.com/**", "https://hooks.slack.com/services/*",
		"prod/*/config", "staging/**", "repo:*", "https://api.github.com/repos/{acme,acme-labs}/**",
		"s3://reports/**", "/var/lib/agents/**", "https://*.internal/*/health",
	)
	for _, bm := range []struct {
		name, s string
		want    int
	}{
		{"first", "https://api.stripe.com/v1/charges/ch_42", 0},
		{"last", "https://svc.internal/a/health", 9},
		{"none", "https://api.example.org/v1/charges/ch_42", -1},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := g.Match(bm.s); got != bm.want {
					b.Fatalf("Match(%q) = %d, want %d", bm.s, got, bm.want)
				}
			}
		})
	}
	b.Run("expression", func(b *testing.B) {
		g := mustList(b, resource.ForBlock, "**/*secret*/**")
		b.ReportAllocs()
		for b.Loop() {
			g.Match("https://api.example.org/v1/charges/ch_42")
		}
	})
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mustList(b, resource.ForBlock, "https://*.Example.com:443/{a,b}/**")
		}
	})
}
