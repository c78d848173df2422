package glob

import (
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
// It is a view of a [Set]'s memory, where numbers of four bytes and words follow each
// other (see package flat): the length of the prefix, the words of a state (n), and how
// many columns, ends and wide units there are; the prefix; the kind of each character of
// ASCII; start, stars and supers; the columns; the ends, each a place and an index; the
// wide units, each a place, how many bounds its ranges have, and these.
type automaton struct {
	// prefix comes before everything else; the places count from its end.
	prefix string
	words  int
	// ascii, start, stars, supers and columns are those of the [builder].
	ascii, start, stars, supers, columns string

	ends, wide          string
	endCount, wideUnits int
}

const (
	automatonHeader = 20
	wordSize        = 8
	endSize         = 8
)

// prefixOf returns the prefix of the automaton at the start of b.
func prefixOf(b string) string { return b[automatonHeader : automatonHeader+flat.Int(b, 0)] }

// automatonAt returns the automaton at the start of b.
func automatonAt(b string) automaton {
	a := automaton{prefix: prefixOf(b), words: flat.Int(b, 4), endCount: flat.Int(b, 12), wideUnits: flat.Int(b, 16)}
	size, columns := a.words*wordSize, flat.Int(b, 8)
	b = b[automatonHeader+len(a.prefix):]
	a.ascii, b = b[:utf8.RuneSelf], b[utf8.RuneSelf:]
	a.start, b = b[:size], b[size:]
	a.stars, b = b[:size], b[size:]
	a.supers, b = b[:size], b[size:]
	a.columns, b = b[:columns*size], b[columns*size:]
	a.ends, a.wide = b[:a.endCount*endSize], b[a.endCount*endSize:]
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
	for i := range a.endCount {
		place, index := flat.Int(a.ends, i*endSize), flat.Int(a.ends, i*endSize+4)
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
		column := flat.Uint64(a.column(r), 0)
		if r >= utf8.RuneSelf {
			column |= a.wideWord(r)
		}
		state = (state&column)<<1 | state&stay
		state |= (state & stars) << 1
	}
	return state
}

// run moves state over s. It returns false if no place is left.
func (a *automaton) run(state []uint64, s string, stops resource.Stops) bool {
	var space [maxChain / 64]uint64
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
		if a.step(state, a.column(r), a.wideColumn(r, &space), stay) == 0 {
			return false
		}
	}
	return true
}

// step moves state over a character that the places in column and wide match and the
// wildcards in stay. It returns 0 if no place is left.
func (a *automaton) step(state []uint64, column string, wide []uint64, stay string) (left uint64) {
	var moved, opened uint64
	for i, d := range state {
		match := flat.Uint64(column, i*wordSize)
		if wide != nil {
			match |= wide[i]
		}
		match &= d
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

// column returns the places whose unit matches r, but for wide units.
func (a *automaton) column(r rune) string {
	if r >= utf8.RuneSelf {
		return a.columns[:a.words*wordSize]
	}
	at := int(a.ascii[r]) * a.words * wordSize
	return a.columns[at : at+a.words*wordSize]
}

// wideColumn returns the places of the wide units that match r, in space, or nil where
// there are none.
func (a *automaton) wideColumn(r rune, space *[maxChain / 64]uint64) []uint64 {
	if r < utf8.RuneSelf || a.wideUnits == 0 {
		return nil
	}
	column := space[:a.words]
	clear(column)
	b := a.wide
	for range a.wideUnits {
		place, bounds := flat.Int(b, 0), flat.Int(b, 4)
		b = b[8:]
		for i := 0; i < bounds && flat.Int(b, 4*i) <= int(r); i += 2 {
			if int(r) <= flat.Int(b, 4*i+4) {
				set(column, place)
				break
			}
		}
		b = b[4*bounds:]
	}
	return column
}

// wideWord is wideColumn where that is one word.
func (a *automaton) wideWord(r rune) uint64 {
	var space [maxChain / 64]uint64
	if wide := a.wideColumn(r, &space); wide != nil {
		return wide[0]
	}
	return 0
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
