package engine

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
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
//	**       any characters, slashes too
//	*        any characters within one segment
//	?        one character but a slash
//	[a-z]    one character of a range; [abc] of a set; [!…] not of it, which
//	         includes the slash
//	{a,b}    either pattern
//	\c       the character c, which must not be a letter or digit
//
// A pattern is matched as it is written and as it would have to be written to
// match a normal form: with the host in lower case, for example. So
// https://EXAMPLE.com:443/%7Ea matches https://example.com/~a. A pattern that
// could never match a normal form, such as a/../b, is refused: a block that
// blocks nothing would be a wrong allow.
//
// Matching a list takes time linear in the text, however many wildcards its
// patterns have: see [automaton]. A list that could take long all the same is
// refused.
//
// Globs is safe for concurrent use.
type Globs struct {
	// programs are in the order of their indices, and so are the patterns of each
	// automaton.
	programs []globProgram
	automata []*automaton
	size     int

	compounds []compound     // until they are built into automata
	costs     map[string]int // of the compounds, by prefix
	spelled   int            // characters, in all spellings
}

// globProgram is one spelling of a pattern with one wildcard * or ** at most.
type globProgram struct {
	index   int
	literal string // before the wildcard
	suffix  string // after it
	star    string // the wildcard; empty where literal is the whole pattern
}

// CompileGlobs compiles patterns. Its error is a *[PatternError].
func CompileGlobs(patterns []string) (*Globs, error) {
	g := &Globs{}
	for i, pattern := range patterns {
		if problem := g.add(i, pattern); problem != "" {
			return nil, &PatternError{Index: i, Problem: problem}
		}
	}
	if err := g.build(); err != nil {
		return nil, err
	}
	return g, nil
}

const tooMuchText = "stands, with those before it, for more than 131072 characters in all their alternatives and spellings"

func (g *Globs) add(index int, pattern string) string {
	alternatives, problem := parsePattern(pattern)
	if problem != "" {
		return problem
	}
	seen := make(map[string]bool)
	for _, units := range alternatives {
		if g.spelled += len(units); g.spelled > maxSpelled {
			return tooMuchText
		}
		all, problem := spellings(units)
		if problem != "" {
			return problem
		}
		for _, spelling := range all {
			g.spelled += len(spelling)
			spelling = coalesce(spelling)
			text := render(spelling)
			if seen[text] {
				continue
			}
			seen[text] = true
			if len(seen) > maxSpellings {
				return "stands for more than 256 alternatives"
			}
			if problem := g.compile(index, spelling); problem != "" {
				return problem
			}
		}
	}
	return ""
}

const tooManyPlaces = "has, with those before it that one resource can meet too, more than 4096 characters after the first of several wildcards"

// compile adds one spelling, or returns what is wrong with it.
func (g *Globs) compile(index int, units []unit) string {
	p := globProgram{index: index}
	var exact, tail bool
	p.literal, exact = literalPrefix(units)
	rest := units[utf8.RuneCountInString(p.literal):]
	if !exact && rest[0].isStar() {
		p.star = rest[0].glob
		p.suffix, tail = literalPrefix(rest[1:])
	}
	if !exact && !tail {
		c := compound{index, p.literal, rest}
		if g.costs == nil {
			g.costs = make(map[string]int)
		}
		if g.costs[c.prefix] += c.cost(); g.costs[c.prefix] > maxChain {
			return tooManyPlaces
		}
		g.compounds = append(g.compounds, c)
		return ""
	}
	g.size += programSize + len(p.literal) + len(p.suffix)
	g.programs = append(g.programs, p)
	return ""
}

// programSize is what a globProgram takes on the heap beyond its text, measured.
const programSize = 96

// maxChain bounds what one text can meet of a list: the places of the compounds
// whose literal prefixes it can have at once.
const maxChain = 4096

// build makes automata of the compounds, one for each literal prefix.
func (g *Globs) build() error {
	if i := dear(g.compounds); i >= 0 {
		return &PatternError{Index: i, Problem: tooManyPlaces}
	}
	byPrefix := make(map[string][]compound)
	for _, c := range g.compounds {
		byPrefix[c.prefix] = append(byPrefix[c.prefix], c)
	}
	for _, prefix := range slices.Sorted(maps.Keys(byPrefix)) {
		a, err := newAutomaton(byPrefix[prefix])
		if err != nil {
			return &PatternError{Index: byPrefix[prefix][0].index, Problem: "does not compile"}
		}
		g.automata = append(g.automata, a)
		g.size += a.size()
	}
	g.compounds, g.costs = nil, nil
	return nil
}

// dear returns the index of the first pattern with which the list exceeds
// maxChain, or -1.
func dear(compounds []compound) int {
	n := sort.Search(len(compounds), func(n int) bool { return chain(compounds[:n+1]) > maxChain })
	if n == len(compounds) {
		return -1
	}
	return compounds[n].index
}

// chain returns the greatest cost of compounds whose prefixes one text can have:
// each is then a prefix of the next.
func chain(compounds []compound) int {
	costs := make(map[string]int)
	for i := range compounds {
		costs[compounds[i].prefix] += compounds[i].cost()
	}
	most, sum := 0, 0
	var open []string // prefixes of each other, whose costs are in sum
	for _, prefix := range slices.Sorted(maps.Keys(costs)) {
		for len(open) > 0 && !strings.HasPrefix(prefix, open[len(open)-1]) {
			sum -= whole(costs[open[len(open)-1]])
			open = open[:len(open)-1]
		}
		open = append(open, prefix)
		sum += whole(costs[prefix])
		most = max(most, sum)
	}
	return most
}

// whole returns cost in whole words of the state.
func whole(cost int) int { return 64 * words(cost) }

// Match returns the index of the first pattern that matches s, -1 when none
// does. It does not allocate.
func (g *Globs) Match(s string) int {
	first := -1
	for i := range g.programs {
		if p := &g.programs[i]; p.match(s) {
			first = p.index
			break
		}
	}
	for _, a := range g.automata {
		if first >= 0 && a.ends[0].index > first {
			continue
		}
		if i := a.match(s); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

func (p *globProgram) match(s string) bool {
	if p.star == "" {
		return s == p.literal
	}
	if len(s) < len(p.literal)+len(p.suffix) || !strings.HasPrefix(s, p.literal) || !strings.HasSuffix(s, p.suffix) {
		return false
	}
	return p.star == "**" || strings.IndexByte(s[len(p.literal):len(s)-len(p.suffix)], '/') < 0
}

// steps bounds what Match takes: the words of all automata for each character,
// and a look at each program.
func (g *Globs) steps(s string) int {
	n := 0
	for _, a := range g.automata {
		n += len(a.start)
	}
	return n*len(s) + len(g.programs)
}

// Size returns about how many bytes g keeps on the heap.
func (g *Globs) Size() int { return g.size + 32 }
