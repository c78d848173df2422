package glob

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"writ.example/writ/engine/resource"
)

// automaton matches patterns that start with the same literal. It matches all of them in one pass
// over the text, however many wildcards they have. A place is a position in a pattern: before a
// unit, or at the end. The state has one bit for each place. The bit is set if the text so far can
// lead to that place. A step takes a few instructions for each word of 64 places.
//
// The literal prefix is compared first. The places only cover the units after the prefix.
type automaton struct {
	prefixGroup

	// words is the number of words in a state. sets has the sets of places, one after another, each
	// with this number of words: see startSet.
	words int
	sets  []uint64
	// ascii has the column of each ASCII character. wide has the runs of characters beyond ASCII
	// with their columns. The first of these runs may begin in ASCII.
	ascii [utf8.RuneSelf]uint8
	wide  []run
	ends  []end
}

// These are the sets of places of an automaton. The first is the start. The next has the places
// before * and **, the third only those before **. The further sets are columns. Each kind of
// character has a column: the places whose unit matches that kind.
const (
	startSet = iota
	starSet
	superSet
	columnSets
)

// end is the place at the end of a pattern.
type end struct{ place, index int }

// run is a run of characters that have the same column.
type run struct {
	first  rune
	column int
}

func (a *automaton) set(i int) []uint64 { return a.sets[i*a.words : (i+1)*a.words] }

func (a *automaton) size() int {
	return int(unsafe.Sizeof(*a)) + len(a.prefix) + 8*len(a.sets) + int(unsafe.Sizeof(run{}))*(len(a.wide)+len(a.ends))
}

// match returns the least index of the patterns that match all of s after the prefix, or -1. If a
// function is given, match calls it with every such index in ascending order instead, and returns
// -1.
func (a *automaton) match(s string, stops resource.Stops, each func(index int)) int {
	if a.words == 1 {
		state := [1]uint64{a.runWord(s, stops)}
		return a.ended(state[:], each)
	}
	var space [maxChain / 64]uint64
	state := space[:a.words]
	if !a.run(state, s, stops) {
		return -1
	}
	return a.ended(state, each)
}

// ended returns the result of [automaton.match]. state is the state after the last character of the
// text.
func (a *automaton) ended(state []uint64, each func(index int)) int {
	for _, e := range a.ends {
		switch {
		case state[e.place/64]>>(e.place%64)&1 == 0:
		case each == nil:
			return e.index
		default:
			each(e.index)
		}
	}
	return -1
}

// runWord returns the state after s. It is for automata whose state is one word.
func (a *automaton) runWord(s string, stops resource.Stops) uint64 {
	state, stars, supers, columns := a.sets[startSet], a.sets[starSet], a.sets[superSet], a.sets[columnSets:]
	for s != "" && state != 0 {
		r, size := next(s)
		s = s[size:]
		stay := stars
		if stopsStar(r, stops) {
			stay = supers
		}
		state = (state&columns[a.column(r)])<<1 | state&stay
		state |= (state & stars) << 1
	}
	return state
}

// run moves state over s. It returns false as soon as no place is left.
func (a *automaton) run(state []uint64, s string, stops resource.Stops) bool {
	copy(state, a.set(startSet))
	for s != "" {
		r, size := next(s)
		s = s[size:]
		stay := a.set(starSet)
		if stopsStar(r, stops) {
			stay = a.set(superSet)
		}
		if a.step(state, a.set(columnSets+a.column(r)), stay) == 0 {
			return false
		}
	}
	return true
}

// step moves state over one character. column has the places whose unit matches the character. stay
// has the places whose wildcard matches it. step returns 0 if no place is left.
func (a *automaton) step(state, column, stay []uint64) (left uint64) {
	var moved, opened uint64
	stars := a.set(starSet)
	for i, d := range state {
		match := d & column[i]
		n := match<<1 | moved | d&stay[i]
		moved = match >> 63
		open := n & stars[i]
		n |= open<<1 | opened
		opened = open >> 63
		state[i] = n
		left |= n
	}
	return left
}

// column returns the column of r.
func (a *automaton) column(r rune) int {
	if r < utf8.RuneSelf {
		return int(a.ascii[r])
	}
	return a.wide[sort.Search(len(a.wide), func(i int) bool { return a.wide[i].first > r })-1].column
}

// next returns the first character of s and its length. s must not be empty. An escape is one
// character.
func next(s string) (rune, int) {
	if s[0] < utf8.RuneSelf && s[0] != '%' {
		return rune(s[0]), 1
	}
	if b, ok := resource.Escape(s); ok {
		return escaped | rune(b), len("%2F")
	}
	return utf8.DecodeRuneInString(s)
}

// stopsStar reports whether a * must end before r.
func stopsStar(r rune, stops resource.Stops) bool {
	return r == '/' || stops != resource.StopsAtSlash && stopsAt(r, stops)
}

// stopsAt reports whether a * of an allowance must end before r. r is not a slash.
func stopsAt(r rune, stops resource.Stops) bool {
	if stops == resource.StopsAtAt {
		return r == '@'
	}
	return strings.ContainsRune(",;?&", r) || r == escaped|'?' || unicode.IsSpace(r)
}
