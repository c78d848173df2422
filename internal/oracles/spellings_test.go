package oracles

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"writ.example/writ/engine/condition"
)

var (
	seed  = flag.Uint64("seed", 1, "seed of the mutated spellings")
	count = flag.Int("spellings", 20_000, "how many spellings to make")
)

// TestNoSpellingOfABlockedResourceMayPass checks a promise of decisions.md: "No spelling of a
// blocked resource may pass". A text that any program reads as a forbidden resource must be
// blocked, not allowed or refused.
func TestNoSpellingOfABlockedResourceMayPass(t *testing.T) {
	n := *count
	if testing.Short() {
		n = min(n, 2_000)
	}
	t.Logf("go test ./internal/oracles -run %s -args -seed %d -spellings %d", t.Name(), *seed, n)
	a := newAsked(t)
	guards := newGuards(t, a)
	m := mutator{rand.New(rand.NewPCG(*seed, 0))}
	found := tally{passed: map[string]int{}, forms: map[form]int{}}
	for made := 0; made < n; {
		batch := m.spellings(guards, min(n-made, 5_000))
		made += len(batch)
		texts := make([]string, len(batch))
		for i, s := range batch {
			texts[i] = s.text
		}
		for i, read := range a.ask(t, texts) {
			found.add(t, batch[i], read)
		}
		if made%100_000 == 0 {
			t.Logf("%d spellings, %d read as forbidden, %d classes passed", made, found.read, len(found.passed))
		}
	}
	found.report(t, n)
}

// spelling is one way to write a forbidden resource.
type spelling struct {
	*guard
	text string
}

// spellings returns n spellings, the same number for each forbidden resource.
func (m *mutator) spellings(guards []*guard, n int) []spelling {
	var out []spelling
	for len(out) < n {
		g := guards[len(out)%len(guards)]
		from := g.resource
		if m.IntN(3) == 0 {
			from = g.via
		}
		if text := m.mutate(g.form, from); text != "" && len(text) <= condition.MaxText {
			out = append(out, spelling{g, text})
		}
	}
	return out
}

// tally counts the verdicts on the spellings.
type tally struct {
	read    int // how many were read as forbidden by a program
	refused int
	forms   map[form]int
	passed  map[string]int // by form, policy and reader
}

// examples is the number of spellings of one class that a failed run shows.
const examples = 3

func (c *tally) add(t *testing.T, s spelling, read []reading) {
	t.Helper()
	reached := targets(read)
	broken := map[string]string{} // the forbidden target by policy
	for _, target := range slices.Sorted(maps.Keys(reached)) {
		for _, policy := range s.breaks(target, reached[target]) {
			broken[policy] = target
		}
	}
	if len(broken) == 0 {
		return
	}
	c.read++
	c.forms[s.form]++
	for policy, target := range broken {
		if s.policies[policy] == nil {
			continue // newGuards has reported it
		}
		switch decide(s.policies[policy], s.text) {
		case refused:
			c.refused++
		case allowed:
			class := string(s.form) + ", policy " + policy + ", " + reached[target]
			c.passed[class]++
			if c.passed[class] <= examples {
				t.Errorf("%q passes the policy %q of %s, but %s reads %s", s.text, policy, s.resource, reached[target], target)
			}
		}
	}
}

// report fails the test if any spelling passed. It also fails if, for some form, fewer than 1 %
// of the spellings were read as a forbidden target, because such a run proves too little.
func (c *tally) report(t *testing.T, n int) {
	t.Helper()
	t.Logf("%d of %d spellings are read as forbidden by some program: %v; %d policies refuse one", c.read, n, c.forms, c.refused)
	for _, class := range slices.Sorted(maps.Keys(c.passed)) {
		t.Errorf("%d passed: %s", c.passed[class], class)
	}
	for _, f := range []form{web, service, file, name, windows, address} {
		if c.forms[f] < n/100 {
			t.Errorf("%d of %d spellings are read as a forbidden %s, want at least 1 %%", c.forms[f], n, f)
		}
	}
}
