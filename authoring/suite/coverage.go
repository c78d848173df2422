package suite

import (
	"fmt"
	"io"
)

// Coverage is how much of the policies and the rules the cases reached.
type Coverage struct {
	// Checks counts each check that a policy sets, seen failing and seen holding, and each
	// pattern of its lists, seen matching. Rules counts each active rule, seen matching,
	// deciding and not matching. Conditions counts each leaf of a condition, seen true and
	// seen false, and each line of several in Rego, seen evaluated.
	Checks, Rules, Conditions Covered
	// Listing has a line for each check, pattern, rule, leaf and line, in the order of the files.
	Listing []Listed
}

// Listed is one line of a policy or of rules.
type Listed struct {
	File string
	Line int
	// Text is the listed part. Missing says what was not seen of it. It is empty if everything
	// was.
	Text, Missing string
}

// Covered counts the parts, and the parts that were seen.
type Covered struct{ Seen, Of int }

// Fraction is Seen/Of. It is 1 if Of is 0.
func (c Covered) Fraction() float64 {
	if c.Of == 0 {
		return 1
	}
	return float64(c.Seen) / float64(c.Of)
}

// String is the fraction in percent, with both counts. It is rounded down, so that 100 % means
// all.
func (c Covered) String() string {
	tenths := int(1000 * c.Fraction())
	return fmt.Sprintf("%d.%d %% (%d of %d)", tenths/10, tenths%10, c.Seen, c.Of)
}

// see counts one more part.
func (c *Covered) see(seen bool) {
	c.Of++
	if seen {
		c.Seen++
	}
}

// Lowest is the lowest of the three fractions.
func (c *Coverage) Lowest() float64 {
	return min(c.Checks.Fraction(), c.Rules.Fraction(), c.Conditions.Fraction())
}

// WriteText writes the listing and the three numbers. An exclamation mark marks a line with
// something not seen.
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
