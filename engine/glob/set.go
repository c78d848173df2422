package glob

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"writ/engine/flat"
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
	// flat is the set in one piece of memory (see package flat): how many programs,
	// automata and words of automata there are; the programs, in the order of their
	// indices; where each automaton is and the least index of its patterns; the texts of
	// the programs; the automata.
	flat string
}

// Places in a Set.
const (
	setHeader     = 12
	programSize   = 20
	automatonSize = 8
)

// setBuilder makes a Set of spellings of patterns, as the readers that share it have
// them.
type setBuilder struct {
	programs  []program
	compounds []compound
}

// program is one spelling of a pattern with one wildcard * or ** at most.
//
// In a Set it is the place of its literal and, after that, its suffix; the length of the
// literal; that of the suffix, times four, and the star; the index; and, where there are as
// many, the last four bytes of the literal, by which most texts differ from it already.
type program struct {
	index   int
	literal string // before the wildcard
	suffix  string // after it
	star    star   // where there is none, literal is the whole pattern
}

// star is the wildcard of a program.
type star uint8

const (
	noStar star = iota
	oneStar
	superStar
)

// SetOf returns the set whose [Set.Flat] it is given.
func SetOf(block string) Set { return Set{block} }

// Flat returns the set in one piece of memory, for what is compiled into one with it.
func (g *Set) Flat() string { return g.flat }

// CompileSet compiles patterns. Its error is a *[PatternError].
func CompileSet(patterns []string) (*Set, error) {
	var b setBuilder
	for i, pattern := range patterns {
		alternatives, problem := parsePattern(pattern)
		if problem != "" {
			return nil, &PatternError{Index: i, Problem: problem}
		}
		for _, units := range alternatives {
			b.add(i, units)
		}
	}
	block, err := b.append(nil)
	if err != nil {
		return nil, err
	}
	return &Set{string(block)}, nil
}

// add adds one spelling of a pattern.
func (g *setBuilder) add(index int, units []unit) {
	p := program{index: index}
	literal, n := literalPrefix(units)
	p.literal = literal
	rest := units[n:]
	tail := 0
	if len(rest) > 0 && rest[0].isStar() {
		p.star = oneStar
		if rest[0].isSuper() {
			p.star = superStar
		}
		p.suffix, tail = literalPrefix(rest[1:])
		tail++
	}
	if tail < len(rest) {
		g.compounds = append(g.compounds, compound{index, literal, rest})
		return
	}
	g.programs = append(g.programs, p)
}

// append appends the [Set], with an automaton of the compounds of each literal prefix.
func (g *setBuilder) append(b []byte) ([]byte, *PatternError) {
	n := sort.Search(len(g.compounds), func(n int) bool { return chain(g.compounds[:n+1]) > maxChain })
	if n < len(g.compounds) {
		const problem = "has, with those before it that one resource can meet too, more than 4096 characters after the first of several wildcards"
		return nil, &PatternError{Index: g.compounds[n].index, Problem: problem}
	}
	byPrefix := make(map[string][]compound)
	for _, c := range g.compounds {
		byPrefix[c.prefix] = append(byPrefix[c.prefix], c)
	}
	size := 0
	for _, compounds := range byPrefix {
		size += wordsOf(compounds)
	}
	base := len(b)
	b = appendInt(appendInt(appendInt(b, len(g.programs)), len(byPrefix)), size)
	texts := len(b) - base + len(g.programs)*programSize + len(byPrefix)*automatonSize
	var text []byte
	for _, p := range g.programs {
		b = p.append(b, texts+len(text))
		text = append(append(text, p.literal...), p.suffix...)
	}
	for _, prefix := range slices.Sorted(maps.Keys(byPrefix)) {
		b = appendInt(appendInt(b, texts+len(text)), byPrefix[prefix][0].index)
		text = appendAutomaton(text, byPrefix[prefix])
	}
	return append(b, text...), nil
}

// append appends the program whose texts are at a place.
func (p *program) append(b []byte, at int) []byte {
	b = appendInt(appendInt(appendInt(appendInt(b, at), len(p.literal)), len(p.suffix)<<2|int(p.star)), p.index)
	var tail [tailSize]byte
	if n := len(p.literal) - tailSize; n >= 0 {
		copy(tail[:], p.literal[n:])
	}
	return append(b, tail[:]...)
}

// tailSize is how many bytes of a literal are beside the program.
const tailSize = 4

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
	for i := range g.programs() {
		if p := g.program(i); p.mayMatch(s) && g.read(p).match(s, stops) {
			first = p.index()
			break
		}
	}
	for i := range g.automata() {
		at, index := g.automaton(i)
		if first >= 0 && index > first || !strings.HasPrefix(s, prefixOf(g.flat[at:])) {
			continue
		}
		a := automatonAt(g.flat[at:])
		if i := a.match(s[len(a.prefix):], stops, nil); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// each yields the index of every pattern that matches s, in no order: a pattern with
// alternatives can be yielded more than once.
func (g *Set) each(s string, stops resource.Stops, yield func(index int)) {
	for i := range g.programs() {
		if p := g.read(g.program(i)); p.match(s, stops) {
			yield(p.index)
		}
	}
	for i := range g.automata() {
		at, _ := g.automaton(i)
		if a := automatonAt(g.flat[at:]); strings.HasPrefix(s, a.prefix) {
			a.match(s[len(a.prefix):], stops, yield)
		}
	}
}

func (g *Set) programs() int { return flat.Int(g.flat, 0) }

func (g *Set) automata() int { return flat.Int(g.flat, 4) }

// program returns the i-th program.
func (g *Set) program(i int) flatProgram {
	at := setHeader + i*programSize
	return flatProgram(g.flat[at : at+programSize])
}

// automaton returns the place of the i-th automaton and the least index of its patterns.
func (g *Set) automaton(i int) (at, index int) {
	entry := setHeader + g.programs()*programSize + i*automatonSize
	return flat.Int(g.flat, entry), flat.Int(g.flat, entry+4)
}

// flatProgram is a program without its texts.
type flatProgram string

func (p flatProgram) literal() int { return flat.Int(string(p), 4) }
func (p flatProgram) suffix() int  { return flat.Int(string(p), 8) >> 2 }
func (p flatProgram) index() int   { return flat.Int(string(p), 12) }

// mayMatch is false of most texts that do not match. It looks at no text of the program.
func (p flatProgram) mayMatch(s string) bool {
	n := p.literal()
	return len(s) >= n+p.suffix() && (n < tailSize || flat.Uint32(s, n-tailSize) == flat.Uint32(string(p), 16))
}

// read returns p with its texts.
func (g *Set) read(p flatProgram) program {
	text := g.flat[flat.Int(string(p), 0):]
	n := p.literal()
	return program{literal: text[:n], suffix: text[n : n+p.suffix()], star: star(flat.Int(string(p), 8) & 3), index: p.index()}
}

func (p program) match(s string, stops resource.Stops) bool {
	if p.star == noStar {
		return s == p.literal
	}
	if len(s) < len(p.literal)+len(p.suffix) || !strings.HasPrefix(s, p.literal) || !strings.HasSuffix(s, p.suffix) {
		return false
	}
	return p.star == superStar || within(s[len(p.literal):len(s)-len(p.suffix)], stops)
}

// within reports whether a * matches s.
func within(s string, stops resource.Stops) bool {
	if stops == resource.StopsAtSlash {
		return strings.IndexByte(s, '/') < 0
	}
	for s != "" {
		r, size := next(s)
		if stopsStar(r, stops) {
			return false
		}
		s = s[size:]
	}
	return true
}

// Steps bounds what Match takes: the words of all automata for each character,
// and a look at each program.
func (g *Set) Steps(s string) int { return flat.Int(g.flat, 8)*len(s) + g.programs() }

// Size returns about how many bytes g keeps on the heap.
func (g *Set) Size() int { return int(unsafe.Sizeof(*g)) + len(g.flat) }

// Len returns the number of spellings of the patterns.
func (g *Set) Len() int { return g.programs() + g.automata() }
