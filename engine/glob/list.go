package glob

import (
	"fmt"
	"strings"
	"unsafe"

	"writ.example/writ/engine/resource"
)

// PatternError says which pattern of a list does not compile, and gives the reason.
type PatternError struct {
	Index   int
	Problem string
}

// Error implements error.
func (e *PatternError) Error() string { return fmt.Sprintf("pattern %d %s", e.Index, e.Problem) }

// List is a compiled list of patterns. It is immutable and safe for concurrent use.
//
// Matching takes time linear in the text, however many wildcards the patterns have: see
// [automaton]. Lists that would still take long do not compile.
type List struct {
	side resource.Side
	// programs are in the order of their indices. texts has the literals and suffixes of all
	// programs, one after another. Separate strings would spread the list over many more cache
	// lines.
	programs []program
	texts    string
	automata []automaton
	// words is the total number of words in the states of all automata.
	words int
}

// program is a spelling of a pattern with at most one wildcard, * or **. A literal stands before
// the wildcard and a suffix after it. Without a wildcard the literal is the whole pattern.
type program struct {
	at, literal, suffix uint32 // where its texts start in List.texts, and their lengths
	index               int32
	readers             resource.Reader
	star                star
	last                byte // the literal's last byte, which differs in most texts
}

// FirstMatch returns the index of the first pattern that matches a reading of r, and the readers of
// that reading. If no pattern matches, the index is -1.
func (l *List) FirstMatch(r *resource.Readings) (int, resource.Reader) {
	for i := range r.Len(resource.ForBlock) {
		if index, by := l.MatchAny(r.At(resource.ForBlock, i)); index >= 0 {
			return index, by
		}
	}
	return -1, 0
}

// Holds reports whether the list matches a resource. For a block one matching reading is enough.
// For an allowance all readings must match. For a list of [CompileSet] Holds is false.
func (l *List) Holds(r *resource.Readings) bool {
	decides, stops := l.side == resource.ForBlock, r.Stops()
	for i := range r.Len(l.side) {
		if l.HoldsOf(r.At(l.side, i), stops) == decides {
			return decides
		}
	}
	return !decides && r.Len(l.side) > 0
}

// HoldsOf reports whether the list matches one reading. A block must match for one reader of the
// reading. An allowance must match for each of its readers.
func (l *List) HoldsOf(reading resource.Reading, stops resource.Stops) bool {
	if l.side == resource.ForBlock {
		i, _ := l.MatchAny(reading)
		return i >= 0
	}
	return l.side == resource.ForAllow && l.matchEvery(reading, stops)
}

// Match returns the index of the first pattern that matches s for any reader, or -1. Use it for
// strings that are not an intent's resource. It does not allocate.
func (l *List) Match(s string) int {
	i, _ := l.search(s, resource.All, resource.StopsAtSlash, nil)
	return i
}

// MatchAny returns the index of the first pattern that matches reading for one of its readers. It
// also returns the readers for which the pattern matches. If no pattern matches, the index is -1.
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

// Settled calls yield with the index of every pattern that matches a reading of r, in any order and
// some more than once. It returns the reading that decides [List.Holds]. For a block this is the
// first reading that matches, for an allowance the first that no pattern matches. If no reading
// decides, it returns the zero value.
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

// search returns the index of the first pattern that matches s for one of readers. It also returns
// the readers for which the pattern matches. If no pattern matches, the index is -1. If a function
// is given, search calls it with the index of every match instead, and returns -1.
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
// pattern has nothing after this literal.
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

// Steps bounds the work of matching s. It counts the words of all automata for each character, and
// one step for each program.
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

// mayMatch is a quick test. If it returns false, p does not match s. It reads no text of the list.
func (p *program) mayMatch(s string) bool {
	return len(s) >= int(p.literal)+int(p.suffix) && (p.literal == 0 || s[p.literal-1] == p.last)
}

// compared returns the literal and the suffix of p.
func (l *List) compared(p *program) (literal, suffix string) {
	texts := l.texts[p.at : p.at+p.literal+p.suffix]
	return texts[:p.literal], texts[p.literal:]
}

// matches reports whether p matches s. Call it only after mayMatch has returned true.
func (l *List) matches(p *program, s string, stops resource.Stops) bool {
	literal, suffix := l.compared(p)
	if p.star == noStar {
		return s == literal
	}
	return strings.HasPrefix(s, literal) && strings.HasSuffix(s, suffix) &&
		(p.star == superStar || within(s[len(literal):len(s)-len(suffix)], stops))
}

// within reports whether a * matches the whole of s.
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
