package glob

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"writ/engine/flat"
	"writ/engine/resource"
)

// automaton matches patterns that start with the same literal, all at once and
// in one pass over the text, however many wildcards they have. Each place in
// each pattern, before a unit or at the end, is a bit of the state: set where
// the text so far can have led there. A step takes a few instructions for 64
// places, which are a word.
//
// It is a view of a [List]'s memory, where numbers of four bytes and words follow each
// other (see package flat): the length of the prefix, the words of a state (n), and how
// many columns, ends and wide runs there are; the prefix; then its members in their order.
type automaton struct {
	// prefix comes before everything else; the places count from its end.
	prefix string
	words  int
	// ascii has the column of each character of ASCII.
	ascii string
	// start are the places before any character; stars those before * and **, supers
	// those before ** alone.
	start, stars, supers string
	// columns has for each kind of character the places whose unit it matches.
	columns string
	// ends are pairs of a place at the end of a pattern and its index, wide of the first
	// character of a run beyond ASCII, the first of which may begin before, and its column.
	ends, wide string
}

const (
	automatonHeader = 20
	wordSize        = 8
	pairSize        = 8
)

// prefixOf returns the prefix of the automaton at the start of b.
func prefixOf(b string) string { return b[automatonHeader : automatonHeader+flat.Int(b, 0)] }

// automatonAt returns the automaton at the start of b.
func automatonAt(b string) automaton {
	a := automaton{prefix: prefixOf(b), words: flat.Int(b, 4)}
	size, columns, ends, wide := a.words*wordSize, flat.Int(b, 8), flat.Int(b, 12), flat.Int(b, 16)
	b = b[automatonHeader+len(a.prefix):]
	a.ascii, b = b[:utf8.RuneSelf], b[utf8.RuneSelf:]
	a.start, b = b[:size], b[size:]
	a.stars, b = b[:size], b[size:]
	a.supers, b = b[:size], b[size:]
	a.columns, b = b[:columns*size], b[columns*size:]
	a.ends, a.wide = b[:ends*pairSize], b[ends*pairSize:(ends+wide)*pairSize]
	return a
}

// match returns the least index of the patterns that match all of s after the prefix, or
// -1. Where each is not nil, it is called for the indices instead, ascending, and match
// returns -1.
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

// ended is what [automaton.match] returns of the state after the last character.
func (a *automaton) ended(state []uint64, each func(index int)) int {
	for i := 0; i < len(a.ends); i += pairSize {
		place, index := flat.Int(a.ends, i), flat.Int(a.ends, i+4)
		switch {
		case state[place/64]>>(place%64)&1 == 0:
		case each == nil:
			return index
		default:
			each(index)
		}
	}
	return -1
}

// runWord returns the state after s, which is one word.
func (a *automaton) runWord(s string, stops resource.Stops) uint64 {
	state, stars, supers := flat.Uint64(a.start, 0), flat.Uint64(a.stars, 0), flat.Uint64(a.supers, 0)
	for s != "" && state != 0 {
		r, size := next(s)
		s = s[size:]
		stay := stars
		if stopsStar(r, stops) {
			stay = supers
		}
		state = (state&flat.Uint64(a.columns, a.column(r)*wordSize))<<1 | state&stay
		state |= (state & stars) << 1
	}
	return state
}

// run moves state over s. It returns false if no place is left.
func (a *automaton) run(state []uint64, s string, stops resource.Stops) bool {
	for i := range state {
		state[i] = flat.Uint64(a.start, i*wordSize)
	}
	for s != "" {
		r, size := next(s)
		s = s[size:]
		stay := a.stars
		if stopsStar(r, stops) {
			stay = a.supers
		}
		if a.step(state, a.columns[a.column(r)*len(stay):], stay) == 0 {
			return false
		}
	}
	return true
}

// step moves state over a character that the places in column match and the wildcards in
// stay. It returns 0 if no place is left.
func (a *automaton) step(state []uint64, column, stay string) (left uint64) {
	var moved, opened uint64
	for i, d := range state {
		match := d & flat.Uint64(column, i*wordSize)
		n := match<<1 | moved | d&flat.Uint64(stay, i*wordSize)
		moved = match >> 63
		open := n & flat.Uint64(a.stars, i*wordSize)
		n |= open<<1 | opened
		opened = open >> 63
		state[i] = n
		left |= n
	}
	return left
}

// column returns which column is that of r.
func (a *automaton) column(r rune) int {
	if r < utf8.RuneSelf {
		return int(a.ascii[r])
	}
	return a.wideColumn(r)
}

func (a *automaton) wideColumn(r rune) int {
	after := sort.Search(len(a.wide)/pairSize, func(i int) bool { return flat.Int(a.wide, i*pairSize) > int(r) })
	return flat.Int(a.wide, (after-1)*pairSize+4)
}

// next returns the first character of s, which is not empty: an escape is one.
func next(s string) (rune, int) {
	if s[0] < utf8.RuneSelf && s[0] != '%' {
		return rune(s[0]), 1
	}
	if b, ok := resource.Escape(s); ok {
		return escaped | rune(b), len("%2F")
	}
	return utf8.DecodeRuneInString(s)
}

// stopsStar reports whether a * ends at r.
func stopsStar(r rune, stops resource.Stops) bool {
	return r == '/' || stops != resource.StopsAtSlash && stopsAt(r, stops)
}

// stopsAt reports whether a * of an allowed pattern ends at r, which is no slash.
func stopsAt(r rune, stops resource.Stops) bool {
	if stops == resource.StopsAtAt {
		return r == '@'
	}
	return strings.ContainsRune(",;?&", r) || r == escaped|'?' || unicode.IsSpace(r)
}
