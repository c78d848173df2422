package engine

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/gobwas/glob"
)

// PatternError says which pattern of a list cannot be compiled, and why.
type PatternError struct {
	Index   int
	Problem string
}

// Error implements error.
func (e *PatternError) Error() string { return fmt.Sprintf("pattern %d %s", e.Index, e.Problem) }

// Globs is a compiled list of patterns in the dialect of OPA's glob.match with
// the delimiter "/":
//
//   - any characters within one segment
//     **       any characters, slashes too
//     ?        one character but a slash
//     [a-z]    one character of a range; [abc] of a set; [!…] not of it, which
//     includes the slash
//     {a,b}    either pattern
//     \c       the character c, which must not be a letter or digit
//
// A pattern is matched as it is written and as it would have to be written to
// match a normal form: with the host in lower case, for example. So
// https://EXAMPLE.com:443/%7Ea matches https://example.com/~a. A pattern that
// could never match a normal form, such as a/../b, is refused: a block that
// blocks nothing would be a wrong allow.
//
// No pattern takes more than linear time: where the glob library would
// backtrack over more than one wildcard, a regular expression takes its place.
//
// Globs is safe for concurrent use.
type Globs struct {
	programs []globProgram
	size     int
}

// globProgram is one spelling of a pattern.
type globProgram struct {
	index   int
	literal string
	// exact is set where literal is the whole pattern; it is a prefix otherwise.
	exact bool
	glob  *glob.Pattern
	expr  *regexp.Regexp
}

// CompileGlobs compiles patterns. Its error is a *[PatternError].
func CompileGlobs(patterns []string) (*Globs, error) {
	g := &Globs{}
	for i, pattern := range patterns {
		if problem := g.add(i, pattern); problem != "" {
			return nil, &PatternError{Index: i, Problem: problem}
		}
	}
	return g, nil
}

func (g *Globs) add(index int, pattern string) string {
	alternatives, problem := parsePattern(pattern)
	if problem != "" {
		return problem
	}
	seen := make(map[string]bool)
	for _, units := range alternatives {
		all, problem := spellings(units)
		if problem != "" {
			return problem
		}
		for _, spelling := range all {
			spelling = coalesce(spelling)
			text := render(spelling)
			if seen[text] {
				continue
			}
			seen[text] = true
			if len(seen) > maxSpellings {
				return "stands for more than 256 alternatives"
			}
			if problem := g.compile(index, text, spelling); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func (g *Globs) compile(index int, text string, units []unit) string {
	p := globProgram{index: index}
	p.literal, p.exact = literalPrefix(units)
	g.size += programSize + 2*len(text)
	var err error
	switch {
	case p.exact:
	case backtracks(units):
		p.expr, err = regexp.Compile(expression(units))
		g.size += exprSize + 64*len(units)
	default:
		p.glob, err = glob.Compile(text, '/')
		g.size += globSize + len(text)
	}
	if err != nil {
		return "does not compile"
	}
	g.programs = append(g.programs, p)
	return ""
}

// What a globProgram takes on the heap beyond its text, measured.
const (
	programSize = 64
	globSize    = 400
	exprSize    = 1500
)

// backtracks reports whether the glob library would search among the places
// where more than one wildcard can end. A wildcard that nothing but a literal
// follows, or whose next literal is the slash that ends it, has only one.
func backtracks(units []unit) bool {
	choices := 0
	for i, u := range units {
		if !u.isStar() {
			continue
		}
		_, rest := literalPrefix(units[i+1:])
		if !rest && (u.glob != "*" || !units[i+1].is('/')) {
			choices++
		}
	}
	return choices > 1
}

// Match returns the index of the first pattern that matches s, -1 when none
// does. It does not allocate.
func (g *Globs) Match(s string) int {
	for i := range g.programs {
		if p := &g.programs[i]; p.match(s) {
			return p.index
		}
	}
	return -1
}

func (p *globProgram) match(s string) bool {
	switch {
	case p.exact:
		return s == p.literal
	case !strings.HasPrefix(s, p.literal):
		return false
	case p.glob != nil:
		return p.glob.Match(s)
	}
	return p.expr.MatchString(s)
}

// Size returns about how many bytes g keeps on the heap.
func (g *Globs) Size() int { return g.size + 32 }
