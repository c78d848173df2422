package glob

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// builder makes an [automaton] of compounds.
type builder struct {
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

// wordsOf returns how many words the state of the automaton of compounds takes.
func wordsOf(compounds []compound) int {
	places := 0
	for i := range compounds {
		places += compounds[i].places()
	}
	return words(places)
}

func words(places int) int { return (places + 63) / 64 }

// appendAutomaton appends the [automaton] of compounds, which have one prefix and are in
// the order of their indices.
func appendAutomaton(b []byte, compounds []compound) []byte {
	n := wordsOf(compounds)
	a := builder{start: make([]uint64, n), stars: make([]uint64, n), supers: make([]uint64, n)}
	a.fill(compounds, n)
	return a.append(b, compounds[0].prefix)
}

// fill puts the units of compounds in their places, in n words.
func (a *builder) fill(compounds []compound, n int) {
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
}

// append appends what [automatonAt] reads.
func (a *builder) append(b []byte, prefix string) []byte {
	for _, n := range []int{len(prefix), len(a.start), len(a.columns), len(a.ends), len(a.wide)} {
		b = appendInt(b, n)
	}
	b = append(append(b, prefix...), a.ascii[:]...)
	for _, places := range slices.Concat([][]uint64{a.start, a.stars, a.supers}, a.columns) {
		for _, word := range places {
			b = binary.LittleEndian.AppendUint64(b, word)
		}
	}
	for _, e := range a.ends {
		b = appendInt(appendInt(b, e.place), e.index)
	}
	for _, w := range a.wide {
		b = appendInt(appendInt(b, w.place), len(w.ranges))
		for _, r := range w.ranges {
			b = appendInt(b, int(r))
		}
	}
	return b
}

// appendInt appends a number that [flat.Int] reads: a count, a place or a character, of
// which the limits of a list allow far fewer than fit.
func appendInt(b []byte, n int) []byte {
	return binary.LittleEndian.AppendUint32(b, uint32(n)) //nolint:gosec // see above
}

// add puts the unit u at place.
func (a *builder) add(place int, u unit, ascii [][]uint64, other []uint64) {
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

// inRanges reports whether r is in one of the ranges, which are sorted.
func inRanges(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges) && ranges[i] <= r; i += 2 {
		if r <= ranges[i+1] {
			return true
		}
	}
	return false
}
