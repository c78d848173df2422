package glob

import (
	"fmt"
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

// List is a compiled list of patterns. It is immutable and safe for concurrent use.
//
// Matching takes time linear in the text, however many wildcards the patterns have: see
// [automaton]. A list that could take long all the same is refused.
type List struct {
	// flat is the list in one piece of memory (see package flat): how many programs,
	// automata and words of automata there are and where the programs begin; the texts of
	// the programs and the automata; the programs in the order of their indices; of each
	// automaton its place, the least index of its patterns and its readers.
	flat string
}

// Sizes in a List.
const (
	listHeader    = 16
	programSize   = 20
	automatonSize = 12
)

// program is one spelling of a pattern with one wildcard * or ** at most, in a List: the
// place of its literal before the wildcard and, after that, of its suffix behind it; the
// length of the literal; in one number the length of the suffix, the readers and the star;
// the index; and, where there are as many, the last four bytes of the literal, by which
// most texts differ from it already. Without a wildcard the literal is the whole pattern.
type program string

const (
	// tailSize is how many bytes of a literal are beside the program.
	tailSize = 4
	// readersAt and suffixAt are the bits of a program's third number from which on it has
	// the readers and the length of the suffix, which is far below 1 MiB: see maxSpelled.
	readersAt = 2
	suffixAt  = 12
)

// The readers fit in between.
var _ [1<<(suffixAt-readersAt) - 1 - resource.All]struct{}

// ListOf returns the list whose [List.Flat] it is given.
func ListOf(block string) List { return List{block} }

// Flat returns the list in one piece of memory, for what is compiled into one with it.
func (l *List) Flat() string { return l.flat }

// FirstMatch returns the index of the first pattern that matches a reading of r, and
// whose reading that is, or -1.
func (l *List) FirstMatch(r *resource.Readings) (int, resource.Reader) {
	for i := range r.Len(resource.ForBlock) {
		if index, by := l.MatchAny(r.At(resource.ForBlock, i)); index >= 0 {
			return index, by
		}
	}
	return -1, 0
}

// Holds reports whether a reading of r that a block looks at matches, or all that an
// allowance has to cover do. The list was compiled for that side.
func (l *List) Holds(r *resource.Readings, side resource.Side) bool {
	switch side {
	case resource.ForBlock:
		i, _ := l.FirstMatch(r)
		return i >= 0
	case resource.ForAllow:
		return l.allowed(r)
	}
	return false
}

func (l *List) allowed(r *resource.Readings) bool {
	stops := r.Stops()
	for i := range r.Len(resource.ForAllow) {
		if !l.MatchEvery(r.At(resource.ForAllow, i), stops) {
			return false
		}
	}
	return r.Len(resource.ForAllow) > 0
}

// Match returns the index of the first pattern that matches s to some reader, or
// -1: for strings that are no resource of an intent. It does not allocate.
func (l *List) Match(s string) int {
	i, _ := l.search(s, resource.All, resource.StopsAtSlash, nil)
	return i
}

// MatchAny returns the index of the first pattern that matches reading to one of
// its readers, and those readers, or -1.
func (l *List) MatchAny(reading resource.Reading) (int, resource.Reader) {
	return l.search(reading.Text, reading.Readers, resource.StopsAtSlash, nil)
}

// MatchEvery reports whether reading matches a pattern to each of its readers.
func (l *List) MatchEvery(reading resource.Reading, stops resource.Stops) bool {
	for left := reading.Readers; left != 0; {
		index, by := l.search(reading.Text, left, stops, nil)
		if index < 0 {
			return false
		}
		left &^= by
	}
	return true
}

// HoldsOf is [List.Holds] of one reading: it matches to one of its readers, or to each.
func (l *List) HoldsOf(reading resource.Reading, side resource.Side, stops resource.Stops) bool {
	switch side {
	case resource.ForBlock:
		i, _ := l.MatchAny(reading)
		return i >= 0
	case resource.ForAllow:
		return l.MatchEvery(reading, stops)
	}
	return false
}

// Each yields the index of every pattern that matches reading to one of its readers, in
// no order: a pattern with alternatives can be yielded more than once. A * also ends at
// stops, which are [resource.StopsAtSlash] for a block.
func (l *List) Each(reading resource.Reading, stops resource.Stops, yield func(index int)) {
	l.search(reading.Text, reading.Readers, stops, yield)
}

// search returns the index of the first pattern that matches s to one of readers, and
// those to which it does, or -1. Where each is not nil, it is called for the indices
// instead, and search returns -1.
func (l *List) search(s string, readers resource.Reader, stops resource.Stops, each func(index int)) (first int, by resource.Reader) {
	first = -1
	for p := l.programs(); p != ""; p = p[programSize:] {
		if !p.mayMatch(s) || p.readers()&readers == 0 || !l.matches(p, s, stops) {
			continue
		}
		if each == nil {
			first, by = p.index(), p.readers()&readers
			break
		}
		each(p.index())
	}
	for i := range l.automata() {
		at, least, its := l.automaton(i)
		if its&readers == 0 || first >= 0 && least >= first || !strings.HasPrefix(s, prefixOf(l.flat[at:])) {
			continue
		}
		a := automatonAt(l.flat[at:])
		if i := a.match(s[len(a.prefix):], stops, each); i >= 0 && (first < 0 || i < first) {
			first, by = i, its&readers
		}
	}
	return first, by
}

// Literals yields what each pattern starts with, as each reader has it, and
// whether that is the whole pattern.
func (l *List) Literals(yield func(literal string, whole bool) bool) {
	for p := l.programs(); p != ""; p = p[programSize:] {
		if literal, _ := l.texts(p); !yield(literal, p.star() == noStar) {
			return
		}
	}
	for i := range l.automata() {
		if at, _, _ := l.automaton(i); !yield(prefixOf(l.flat[at:]), false) {
			return
		}
	}
}

// Steps bounds what matching s takes: the words of all automata for each character, and
// a look at each program.
func (l *List) Steps(s string) int { return flat.Int(l.flat, 8)*len(s) + flat.Int(l.flat, 0) }

// Size returns about how many bytes l keeps on the heap.
func (l *List) Size() int { return int(unsafe.Sizeof(*l)) + len(l.flat) }

// Len returns the number of spellings of the patterns.
func (l *List) Len() int { return flat.Int(l.flat, 0) + l.automata() }

// programs returns all programs, each of which begins with its numbers.
func (l *List) programs() program {
	at := flat.Int(l.flat, 12)
	return program(l.flat[at : at+flat.Int(l.flat, 0)*programSize])
}

func (l *List) automata() int { return flat.Int(l.flat, 4) }

// automaton returns the place, the least index and the readers of the i-th automaton.
func (l *List) automaton(i int) (at, index int, readers resource.Reader) {
	entry := flat.Int(l.flat, 12) + flat.Int(l.flat, 0)*programSize + i*automatonSize
	return flat.Int(l.flat, entry), flat.Int(l.flat, entry+4), resource.Reader(flat.Int(l.flat, entry+8)) //nolint:gosec // as written
}

func (p program) literal() int { return flat.Int(string(p), 4) }
func (p program) suffix() int  { return flat.Int(string(p), 8) >> suffixAt }
func (p program) star() star   { return star(flat.Int(string(p), 8) & (1<<readersAt - 1)) }
func (p program) index() int   { return flat.Int(string(p), 12) }
func (p program) readers() resource.Reader {
	return resource.Reader(flat.Int(string(p), 8)>>readersAt) & resource.All
}

// mayMatch is false of most texts that do not match. It looks at no text of the program.
func (p program) mayMatch(s string) bool {
	n := p.literal()
	return len(s) >= n+p.suffix() && (n < tailSize || flat.Uint32(s, n-tailSize) == flat.Uint32(string(p), 16))
}

// texts returns the literal and the suffix of p.
func (l *List) texts(p program) (literal, suffix string) {
	text, n := l.flat[flat.Int(string(p), 0):], p.literal()
	return text[:n], text[n : n+p.suffix()]
}

// matches reports whether p, which may, matches s.
func (l *List) matches(p program, s string, stops resource.Stops) bool {
	literal, suffix := l.texts(p)
	if p.star() == noStar {
		return s == literal
	}
	return strings.HasPrefix(s, literal) && strings.HasSuffix(s, suffix) &&
		(p.star() == superStar || within(s[len(literal):len(s)-len(suffix)], stops))
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
