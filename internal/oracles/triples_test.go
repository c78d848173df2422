package oracles

import (
	"testing"

	"writ.example/writ/internal/oracles/verdicts"
)

// TestTriples checks the verdicts on whole policies.
func TestTriples(t *testing.T) {
	verdicts.Run(t, func(t *testing.T, c verdicts.Case) {
		p := mustPolicy(t, c.Allow, c.Block)
		for _, r := range c.Passes {
			if got := decide(p, r); got != allowed {
				t.Errorf("allow %q, block %q: %q is %s, want allowed", c.Allow, c.Block, r, got)
			}
		}
		for _, r := range c.Not {
			if got := decide(p, r); got == allowed {
				t.Errorf("allow %q, block %q: %q is allowed, want not", c.Allow, c.Block, r)
			}
		}
		for _, r := range c.IsRefused {
			if got := decide(p, r); got != refused {
				t.Errorf("%q is %s, want refused", r, got)
			}
		}
	})
}
