package glob

import (
	"fmt"
	"strings"
	"unsafe"

	"writ/engine/resource"
)

// PatternError says which pattern of a list does not compile, and why.
type PatternError struct {
	Index   int
	Problem string
}

// Error implements error.
func (e *PatternError) Error() string { return fmt.Sprintf("pattern %d %s", e.Index, e.Problem) }

// List is a compiled list of patterns. It is immutable and safe for concurrent use.
//
// Matching takes time linear in the text, however many wildcards the patterns have: see
// [automaton]. Compiling refuses a list if matching it could still take long.
type List struct {
	side resource.Side
	// programs are in the order of their indices. texts has the literals and suffixes of all
	// programs, one after another. Pointers to the texts would spread the list over many more
	// cache lines.
	programs []program
	texts    string
	automata []automaton
	// words is the number of words in the states of all automata together.
	words int
}

// program is a spelling of a pattern with at most one wildcard, * or **. The wildcard stands
// between a literal and a suffix. Without a wildcard the literal is the whole pattern.
type program struct {
	at, literal, suffix uint32 // the start of its texts in List.texts, and their lengths
	index               int32
	readers             resource.Reader
	star                star
	last                byte // the last byte of the literal, which rules out most texts
}

// FirstMatch returns the index of the first pattern that matches a reading of r, and the readers of
// that reading. The index is -1 if no pattern matches.
func (l *List) FirstMatch(r *resource.Readings) (int, resource.Reader) {
	for i := range r.Len(resource.ForBlock) {
		if index, by := l.MatchAny(r.At(resource.ForBlock, i)); index >= 0 {
			return index, by
		}
	}
	return -1, 0
}

// Holds reports whether the list matches a resource. For a list of a block one matching reading is
// enough. For a list of an allowance all readings must match. For a set Holds is false.
func (l *List) Holds(r *resource.Readings) bool {
	decides, stops := l.side == resource.ForBlock, r.Stops()
	for i := range r.Len(l.side) {
		if l.HoldsOf(r.At(l.side, i), stops) == decides {
			return decides
		}
	}
	return !decides && r.Len(l.side) > 0
}

// HoldsOf reports whether the list matches one reading. A list of a block must match for one
// reader of the reading, a list of an allowance for each reader.
func (l *List) HoldsOf(reading resource.Reading, stops resource.Stops) bool {
	if l.side == resource.ForBlock {
		i, _ := l.MatchAny(reading)
		return i >= 0
	}
	return l.side == resource.ForAllow && l.matchEvery(reading, stops)
}

// Match returns the index of the first pattern that matches s for some reader, or -1. It is for
// strings that are not an intent's resource. It does not allocate.
func (l *List) Match(s string) int {
	i, _ := l.search(s, resource.All, resource.StopsAtSlash, nil)
	return i
}

// MatchAny returns the index of the first pattern that matches reading for one of its readers, and
// the readers for which it matches. The index is -1 if no pattern matches.
func (l *List) MatchAny(reading resource.Reading) (int, resource.Reader) {
	return l.search(reading.Text, reading.Readers, resource.StopsAtSlash, nil)
}

// matchEvery reports whether each reader of reading has a pattern that matches reading.
func (l *List) matchEvery(reading resource.Reading, stops resource.Stops) bool {
	for left := reading.Readers; left != 0; {
		index, by := l.search(reading.Text, left, stops, nil)
		if index < 0 {
			return false
		}
		left &^= by
	}
	return true
}

// Settled yields the index of every pattern that matches a reading of r for one of its readers, in
// any order and some more than once. It returns the reading that decides [List.Holds]: the first
// that a block matches, or the first that no allowed pattern matches. If no reading decides, it
// returns the zero value.
func (l *List) Settled(r *resource.Readings, yield func(index int)) (settles resource.Reading) {
	stops := resource.StopsAtSlash
	if l.side == resource.ForAllow {
		stops = r.Stops()
	}
	for i := range r.Len(l.side) {
		reading := r.At(l.side, i)
		l.search(reading.Text, reading.Readers, stops, yield)
		if settles.Readers == 0 && l.HoldsOf(reading, stops) == (l.side == resource.ForBlock) {
			settles = reading
		}
	}
	return settles
}

// search returns the index of the first pattern that matches s for one of readers, and the readers
// for which it matches. The index is -1 if no pattern matches. If each is not nil, search calls
// each with the index of every match instead and returns -1.
func (l *List) search(
	s string, readers resource.Reader, stops resource.Stops, each func(index int),
) (first int, by resource.Reader) {
	first = -1
	for i := range l.programs {
		p := &l.programs[i]
		if !p.mayMatch(s) || p.readers&readers == 0 || !l.matches(p, s, stops) {
			continue
		}
		if each == nil {
			first, by = int(p.index), p.readers&readers
			break
		}
		each(int(p.index))
	}
	for i := range l.automata {
		a := &l.automata[i]
		if a.readers&readers == 0 || first >= 0 && a.ends[0].index >= first || !strings.HasPrefix(s, a.prefix) {
			continue
		}
		if i := a.match(s[len(a.prefix):], stops, each); i >= 0 && (first < 0 || i < first) {
			first, by = i, a.readers&readers
		}
	}
	return first, by
}

// Literals yields the literal beginning of each pattern in each reading. whole says that the
// pattern is nothing but this literal.
func (l *List) Literals(yield func(literal string, whole bool) bool) {
	for i := range l.programs {
		p := &l.programs[i]
		if literal, _ := l.compared(p); !yield(literal, p.star == noStar) {
			return
		}
	}
	for i := range l.automata {
		if !yield(l.automata[i].prefix, false) {
			return
		}
	}
}

// Steps returns a bound of the work of matching s: the words of all automata for each character,
// and one step for each program.
func (l *List) Steps(s string) int { return l.words*len(s) + len(l.programs) }

// Size returns the approximate size of l on the heap, in bytes.
func (l *List) Size() int {
	size := int(unsafe.Sizeof(*l)) + len(l.programs)*int(unsafe.Sizeof(program{})) + len(l.texts)
	for i := range l.automata {
		size += l.automata[i].size()
	}
	return size
}

// Len returns the number of spellings of the patterns.
func (l *List) Len() int { return len(l.programs) + len(l.automata) }

// mayMatch reports whether p may match s. It is false for most texts that p does not match, and
// needs no text of the list for that.
func (p *program) mayMatch(s string) bool {
	return len(s) >= int(p.literal)+int(p.suffix) && (p.literal == 0 || s[p.literal-1] == p.last)
}

// compared returns the literal and the suffix of p.
func (l *List) compared(p *program) (literal, suffix string) {
	texts := l.texts[p.at : p.at+p.literal+p.suffix]
	return texts[:p.literal], texts[p.literal:]
}

// matches reports whether p matches s. mayMatch must be true for s.
func (l *List) matches(p *program, s string, stops resource.Stops) bool {
	literal, suffix := l.compared(p)
	if p.star == noStar {
		return s == literal
	}
	return strings.HasPrefix(s, literal) && strings.HasSuffix(s, suffix) &&
		(p.star == superStar || within(s[len(literal):len(s)-len(suffix)], stops))
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
