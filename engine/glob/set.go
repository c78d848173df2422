package glob

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"writ/engine/resource"
)

// PatternError says which pattern of a list cannot be compiled, and why.
type PatternError struct {
	Index   int
	Problem string
}

// Error implements error.
func (e *PatternError) Error() string { return fmt.Sprintf("pattern %d %s", e.Index, e.Problem) }

// Set is a compiled list of patterns, each matched as it is written: for strings
// that are no resources, such as agent ids and metadata.
//
// Matching a set takes time linear in the text, however many wildcards its
// patterns have: see [automaton]. A list that could take long all the same is
// refused.
//
// A Set is immutable and safe for concurrent use.
type Set struct {
	// programs are in the order of their indices, and so are the patterns of each
	// automaton.
	programs []program
	automata []*automaton
	size     int

	compounds []compound // until they are built into automata
}

// program is one spelling of a pattern with one wildcard * or ** at most.
type program struct {
	index   int
	literal string // before the wildcard
	suffix  string // after it
	star    string // the wildcard; empty where literal is the whole pattern
}

// CompileSet compiles patterns. Its error is a *[PatternError].
func CompileSet(patterns []string) (*Set, error) {
	s := &Set{}
	for i, pattern := range patterns {
		alternatives, problem := parsePattern(pattern)
		if problem != "" {
			return nil, &PatternError{Index: i, Problem: problem}
		}
		for _, units := range alternatives {
			s.add(i, units)
		}
	}
	if err := s.build(); err != nil {
		return nil, err
	}
	return s, nil
}

// add adds one spelling of a pattern.
func (g *Set) add(index int, units []unit) {
	p := program{index: index}
	literal, n := literalPrefix(units)
	p.literal = literal
	rest := units[n:]
	tail := 0
	if len(rest) > 0 && rest[0].isStar() {
		p.star = rest[0].glob
		p.suffix, tail = literalPrefix(rest[1:])
		tail++
	}
	if tail < len(rest) {
		g.compounds = append(g.compounds, compound{index, literal, rest})
		return
	}
	g.size += programSize + len(p.literal) + len(p.suffix)
	g.programs = append(g.programs, p)
}

// programSize is what a program takes on the heap beyond its text, measured.
const programSize = 96

// build makes automata of the compounds, one for each literal prefix.
func (g *Set) build() *PatternError {
	n := sort.Search(len(g.compounds), func(n int) bool { return chain(g.compounds[:n+1]) > maxChain })
	if n < len(g.compounds) {
		const problem = "has, with those before it that one resource can meet too, more than 4096 characters after the first of several wildcards"
		return &PatternError{Index: g.compounds[n].index, Problem: problem}
	}
	byPrefix := make(map[string][]compound)
	for _, c := range g.compounds {
		byPrefix[c.prefix] = append(byPrefix[c.prefix], c)
	}
	for _, prefix := range slices.Sorted(maps.Keys(byPrefix)) {
		a := newAutomaton(byPrefix[prefix])
		g.automata = append(g.automata, a)
		g.size += a.size()
	}
	g.compounds = nil
	return nil
}

// chain returns the greatest cost of compounds whose prefixes one text can have,
// in whole words of the state: each is then a prefix of the next.
func chain(compounds []compound) int {
	costs := make(map[string]int)
	for i := range compounds {
		costs[compounds[i].prefix] += compounds[i].cost()
	}
	most := 0
	for prefix := range costs {
		sum := 0
		for n := range len(prefix) + 1 {
			sum += 64 * words(costs[prefix[:n]])
		}
		most = max(most, sum)
	}
	return most
}

// Match returns the index of the first pattern that matches s, -1 when none
// does. It does not allocate.
func (g *Set) Match(s string) int { return g.match(s, resource.StopsAtSlash) }

func (g *Set) match(s string, stops resource.Stops) int {
	first := -1
	for i := range g.programs {
		if p := &g.programs[i]; p.match(s, stops) {
			first = p.index
			break
		}
	}
	for _, a := range g.automata {
		if first >= 0 && a.ends[0].index > first {
			continue
		}
		if i := a.match(s, stops, nil); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// each yields the index of every pattern that matches s, in no order: a pattern with
// alternatives can be yielded more than once.
func (g *Set) each(s string, stops resource.Stops, yield func(index int)) {
	for i := range g.programs {
		if p := &g.programs[i]; p.match(s, stops) {
			yield(p.index)
		}
	}
	for _, a := range g.automata {
		a.match(s, stops, yield)
	}
}

func (p *program) match(s string, stops resource.Stops) bool {
	if p.star == "" {
		return s == p.literal
	}
	if len(s) < len(p.literal)+len(p.suffix) || !strings.HasPrefix(s, p.literal) || !strings.HasSuffix(s, p.suffix) {
		return false
	}
	return p.star == "**" || within(s[len(p.literal):len(s)-len(p.suffix)], stops)
}

// within reports whether a * matches s.
func within(s string, stops resource.Stops) bool {
	if stops == resource.StopsAtSlash {
		return strings.IndexByte(s, '/') < 0
	}
	for s != "" {
		r, size := next(s)
		if r == '/' || stopsAt(r, stops) {
			return false
		}
		s = s[size:]
	}
	return true
}

// Steps bounds what Match takes: the words of all automata for each character,
// and a look at each program.
func (g *Set) Steps(s string) int {
	n := 0
	for _, a := range g.automata {
		n += len(a.start)
	}
	return n*len(s) + len(g.programs)
}

// Size returns about how many bytes g keeps on the heap.
func (g *Set) Size() int { return g.size + 32 }

// Len returns the number of spellings of the patterns.
func (g *Set) Len() int { return len(g.programs) + len(g.automata) }
