package oracles

import (
	"os"
	"strings"
	"testing"

	"writ/engine"
)

// triple is one case of testdata/triples.txt.
type triple struct {
	why          string
	allow, block []string
	passes, not  []string
}

// TestTriples holds what policies mean as careful authors write them: each case
// says what passes and what does not.
func TestTriples(t *testing.T) {
	all := triples(t)
	if len(all) < 100 {
		t.Errorf("triples.txt has %d cases, want at least 100", len(all))
	}
	for _, c := range all {
		t.Run(c.why, func(t *testing.T) {
			p := mustPolicy(t, c.allow, c.block)
			check(t, p, &c)
		})
	}
}

func check(t *testing.T, p *engine.Policy, c *triple) {
	t.Helper()
	for _, r := range c.passes {
		if got := decide(p, r); got != allowed {
			t.Errorf("allow %q, block %q: %q is %s, want allowed", c.allow, c.block, r, got)
		}
	}
	for _, r := range c.not {
		if got := decide(p, r); got == allowed {
			t.Errorf("allow %q, block %q: %q is allowed, want not", c.allow, c.block, r)
		}
	}
}

func triples(t *testing.T) []triple {
	t.Helper()
	data, err := os.ReadFile("testdata/triples.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []triple
	for _, block := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		if strings.HasPrefix(block, "# ") {
			continue
		}
		var c triple
		for i, line := range strings.Split(block, "\n") {
			verb, rest, _ := strings.Cut(line, " ")
			switch {
			case i == 0:
				c.why = line
			case verb == "allow":
				c.allow = append(c.allow, rest)
			case verb == "block":
				c.block = append(c.block, rest)
			case verb == "+":
				c.passes = append(c.passes, rest)
			case verb == "-":
				c.not = append(c.not, rest)
			default:
				t.Fatalf("triples.txt: %q is no allow, block, + or -", line)
			}
		}
		if len(c.not)+len(c.passes) < 2 {
			t.Fatalf("triples.txt: %q has fewer than two resources", c.why)
		}
		out = append(out, c)
	}
	return out
}
