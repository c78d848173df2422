package suite

import (
	"fmt"
	"io"
)

// Coverage says how much of policies and rules the cases came past.
type Coverage struct {
	Checks, Rules, Conditions Covered
}

// Covered counts what there is to see, and what of it was seen.
type Covered struct{ Seen, Of int }

// Fraction is the part that was seen, from 0 to 1; 1 where there is nothing to see.
func (c Covered) Fraction() float64 {
	if c.Of == 0 {
		return 1
	}
	return float64(c.Seen) / float64(c.Of)
}

// Lowest is the least of the three fractions.
func (c *Coverage) Lowest() float64 {
	return min(c.Checks.Fraction(), c.Rules.Fraction(), c.Conditions.Fraction())
}

// WriteText writes the three numbers and the listing.
func (c *Coverage) WriteText(w io.Writer) {
	fmt.Fprintf(w, "coverage: checks %s, rules %s, conditions %s\n", c.Checks, c.Rules, c.Conditions)
}

func (c Covered) String() string {
	return fmt.Sprintf("%.1f %% (%d of %d)", 100*c.Fraction(), c.Seen, c.Of)
}

type coverage struct{}

func newCoverage([]*Suite) *coverage { return nil }

func (c *coverage) add(*Case) {}

func (c *coverage) summary() *Coverage { return nil }
