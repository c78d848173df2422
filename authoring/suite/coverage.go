package suite

import (
	"fmt"
	"io"
)

// Coverage says how much of the policies and the rules the cases came past.
type Coverage struct {
	// Checks counts each check that a policy sets, seen failing and seen holding, and each
	// pattern of its lists, seen matching. Rules counts each active rule, seen matching,
	// deciding and not matching. Conditions counts each leaf of a condition, seen true and
	// seen false, and each line of several in Rego, seen evaluated.
	Checks, Rules, Conditions Covered
	// Listing has a line for each of them, in the order of the files.
	Listing []Listed
}

// Listed is one line of a policy or of rules.
type Listed struct {
	File string
	Line int
	// Text names what stands there. Missing says what of it was not seen, empty where all
	// was.
	Text, Missing string
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

// String is the fraction in percent, and what it is of. Less than all is never 100 %.
func (c Covered) String() string {
	tenths := int(1000 * c.Fraction())
	return fmt.Sprintf("%d.%d %% (%d of %d)", tenths/10, tenths%10, c.Seen, c.Of)
}

// see counts one more thing to see.
func (c *Covered) see(seen bool) {
	c.Of++
	if seen {
		c.Seen++
	}
}

// Lowest is the least of the three fractions.
func (c *Coverage) Lowest() float64 {
	return min(c.Checks.Fraction(), c.Rules.Fraction(), c.Conditions.Fraction())
}

// WriteText writes the listing, where an exclamation mark is before what was not seen, and
// the three numbers.
func (c *Coverage) WriteText(w io.Writer) {
	file := ""
	for _, l := range c.Listing {
		if l.File != file {
			file = l.File
			fmt.Fprintf(w, "\n%s\n", file)
		}
		mark, missing := " ", ""
		if l.Missing != "" {
			mark, missing = "!", ": "+l.Missing
		}
		fmt.Fprintf(w, "%5d %s %s%s\n", l.Line, mark, l.Text, missing)
	}
	fmt.Fprintf(w, "\ncoverage: checks %s, rules %s, conditions %s\n", c.Checks, c.Rules, c.Conditions)
}
