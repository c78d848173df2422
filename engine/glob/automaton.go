package glob

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"writ/engine/resource"
)

// automaton matches patterns that start with the same literal, all at once and
// in one pass over the text, however many wildcards they have. Each place in
// each pattern, before a unit or at the end, is a bit of the state: set where
// the text so far can have led there. A step takes a few instructions for 64
// places.
//
// It is immutable and safe for concurrent use.
type automaton struct {
	// prefix comes before everything else; the places count from its end.
	prefix string
	// start are the places before any character.
	start []uint64
	// stars are the places before * and **, supers those before ** alone.
	stars, supers []uint64
	// columns has for each kind of character the places whose unit it matches;
	// ascii says which kind a character of ASCII is, and kind 0 are the others.
	columns [][]uint64
	ascii   [utf8.RuneSelf]uint8
	// wide are the units that match some characters beyond ASCII and not all.
	wide []wideUnit
	ends []end
}

// wideUnit is a place and the ranges of characters that its unit matches.
type wideUnit struct {
	place  int
	ranges []rune
}

// end is the place at the end of a pattern.
type end struct{ place, index int }

// compound is one spelling of a pattern whose wildcards need an automaton.
type compound struct {
	index  int
	prefix string
	units  []unit // after the prefix
}

// places is how many bits a compound takes.
func (c *compound) places() int { return len(c.units) + 1 }

// cost is what a character takes to match, in places: those of a compound, and
// more for each unit beyond ASCII, which is asked one by one.
func (c *compound) cost() int {
	cost := c.places()
	for _, u := range c.units {
		switch {
		case u.lit >= utf8.RuneSelf:
			cost += 8
		case u.class != nil && utf8.RuneCountInString(u.class.expr) < len(u.class.expr):
			cost += 8 + len(u.class.expr)
		}
	}
	return cost
}

func words(places int) int { return (places + 63) / 64 }

// newAutomaton returns the automaton of compounds, which have one prefix and
// are in the order of their indices.
func newAutomaton(compounds []compound) *automaton {
	places := 0
	for i := range compounds {
		places += compounds[i].places()
	}
	n := words(places)
	a := &automaton{
		prefix: compounds[0].prefix,
		start:  make([]uint64, n), stars: make([]uint64, n), supers: make([]uint64, n),
	}
	ascii := make([][]uint64, utf8.RuneSelf)
	for i := range ascii {
		ascii[i] = make([]uint64, n)
	}
	other := make([]uint64, n)
	place := 0
	for _, c := range compounds {
		set(a.start, place)
		if c.units[0].isStar() { // which may match nothing; no wildcard follows it
			set(a.start, place+1)
		}
		for _, u := range c.units {
			a.add(place, u, ascii, other)
			place++
		}
		a.ends = append(a.ends, end{place, c.index})
		place++
	}
	a.columns = append(a.columns, other)
	for c, column := range ascii {
		kind := slices.IndexFunc(a.columns, func(known []uint64) bool { return slices.Equal(known, column) })
		if kind < 0 {
			kind = len(a.columns)
			a.columns = append(a.columns, column)
		}
		a.ascii[c] = uint8(kind)
	}
	return a
}

// add puts the unit u at place.
func (a *automaton) add(place int, u unit, ascii [][]uint64, other []uint64) {
	if u.isStar() {
		set(a.stars, place)
		if u.isSuper() {
			set(a.supers, place)
		}
		return
	}
	ranges := []rune{u.lit, u.lit}
	if u.class != nil {
		ranges = u.class.ranges
	}
	for c := range ascii {
		if inRanges(ranges, rune(c)) {
			set(ascii[c], place)
		}
	}
	switch lo, hi := ranges[len(ranges)-2], ranges[len(ranges)-1]; {
	case lo <= utf8.RuneSelf && hi == utf8.MaxRune:
		set(other, place)
	case hi >= utf8.RuneSelf:
		a.wide = append(a.wide, wideUnit{place, ranges})
	}
}

func set(places []uint64, place int) { places[place/64] |= 1 << (place % 64) }

// match returns the least index of the patterns that match all of s, or -1. Where each is
// not nil, it is called for the indices instead, ascending, and match returns -1.
func (a *automaton) match(s string, stops resource.Stops, each func(index int)) int {
	if !strings.HasPrefix(s, a.prefix) {
		return -1
	}
	var space, scratch [maxChain / 64]uint64
	state := space[:len(a.start)]
	copy(state, a.start)
	for s = s[len(a.prefix):]; s != ""; {
		r, size := next(s)
		s = s[size:]
		stay := a.stars
		if r == '/' || stops != resource.StopsAtSlash && stopsAt(r, stops) {
			stay = a.supers
		}
		if a.step(state, a.column(r, &scratch), stay) == 0 {
			return -1
		}
	}
	for _, e := range a.ends {
		if state[e.place/64]>>(e.place%64)&1 == 0 {
			continue
		}
		if each == nil {
			return e.index
		}
		each(e.index)
	}
	return -1
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

// stopsAt reports whether a * of an allowed pattern ends at r, which is no slash.
func stopsAt(r rune, stops resource.Stops) bool {
	if stops == resource.StopsAtAt {
		return r == '@'
	}
	return strings.ContainsRune(",;?&", r) || r == escaped|'?' || unicode.IsSpace(r)
}

// step moves state over a character that the places in column match and the
// wildcards in stay. It returns 0 if no place is left.
func (a *automaton) step(state, column, stay []uint64) (left uint64) {
	stars := a.stars[:len(state)]
	column, stay = column[:len(state)], stay[:len(state)]
	var moved, opened uint64
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

// column returns the places whose unit matches r.
func (a *automaton) column(r rune, scratch *[maxChain / 64]uint64) []uint64 {
	if r < utf8.RuneSelf {
		return a.columns[a.ascii[r]]
	}
	if len(a.wide) == 0 {
		return a.columns[0]
	}
	column := scratch[:copy(scratch[:], a.columns[0])]
	for i := range a.wide {
		if w := &a.wide[i]; inRanges(w.ranges, r) {
			set(column, w.place)
		}
	}
	return column
}

// inRanges reports whether r is in one of the ranges, which are sorted.
func inRanges(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges) && ranges[i] <= r; i += 2 {
		if r <= ranges[i+1] {
			return true
		}
	}
	return false
}

// size returns about how many bytes a keeps on the heap.
func (a *automaton) size() int {
	size := automatonSize + len(a.prefix) + 8*len(a.start)*(3+len(a.columns)) + 24*len(a.columns)
	for i := range a.wide {
		size += 32 + 4*len(a.wide[i].ranges)
	}
	return size + 16*len(a.ends)
}

const automatonSize = 400
