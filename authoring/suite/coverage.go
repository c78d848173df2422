package suite

import (
	"fmt"
	"io"
)

// Coverage says how much of the policies and the rules the cases reached.
type Coverage struct {
	// Checks counts two parts of each check that a policy sets: a case fails it, and a case passes
	// it. It also counts each pattern of a list: a case matches it. Rules counts three parts of
	// each active rule: it matches, it decides, it does not match. Conditions counts two parts of
	// each leaf of a condition: it is true, it is false. For a condition in Rego with several
	// lines, Conditions also counts each line: a case evaluates it.
	Checks, Rules, Conditions Covered
	// Listing has a line for each check, pattern, rule, leaf and line, in the order of the files.
	Listing []Listed
}

// Listed is one line of a policy or of rules.
type Listed struct {
	File string
	Line int
	// Text is the listed part of the file. Missing names what no case reached. It is empty if the
	// cases reached everything.
	Text, Missing string
}

// Covered counts parts. Of is the number of all parts, Seen the number of parts that a case
// reached.
type Covered struct{ Seen, Of int }

// Fraction returns Seen/Of. It returns 1 if Of is 0.
func (c Covered) Fraction() float64 {
	if c.Of == 0 {
		return 1
	}
	return float64(c.Seen) / float64(c.Of)
}

// String returns the fraction in percent with both counts. It rounds down, so that 100 % means that
// everything was reached.
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

// Lowest returns the lowest of the three fractions.
func (c *Coverage) Lowest() float64 {
	return min(c.Checks.Fraction(), c.Rules.Fraction(), c.Conditions.Fraction())
}

// WriteText writes the listing and the three fractions. An exclamation mark marks a line with a
// part that no case reached.
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
