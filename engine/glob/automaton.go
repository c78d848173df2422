package glob

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// places is how many bits a compound takes.
func (c *compound) places() int { return len(c.units) + 1 }

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
	bounds := boundsOf(compounds)
	sets := make([][]uint64, 3+len(bounds))
	for i := range sets {
		sets[i] = make([]uint64, n)
	}
	start, stars, supers, columns := sets[0], sets[1], sets[2], sets[3:]
	var ends []int
	place := 0
	for _, c := range compounds {
		set(start, place)
		if c.units[0].star != noStar { // which may match nothing; no wildcard follows it
			set(start, place+1)
		}
		for _, u := range c.units {
			if u.star != noStar {
				set(stars, place)
			}
			if u.star == superStar {
				set(supers, place)
			}
			for lo, hi := range u.ranges {
				first, _ := slices.BinarySearch(bounds, lo)
				for i := first; i < len(bounds) && bounds[i] <= hi; i++ {
					set(columns[i], place)
				}
			}
			place++
		}
		ends = append(ends, place, c.index)
		place++
	}
	kinds, ascii, wide := kindsOf(bounds, columns)
	b = appendInts(b, len(compounds[0].prefix), n, len(kinds), len(ends)/2, len(wide)/2)
	b = append(append(b, compounds[0].prefix...), ascii[:]...)
	for _, word := range slices.Concat(start, stars, supers, slices.Concat(kinds...)) {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return appendInts(appendInts(b, ends...), wide...)
}

// boundsOf returns the first character of each run of characters that no unit of
// compounds tells apart, ascending.
func boundsOf(compounds []compound) []rune {
	bounds := []rune{0}
	for _, c := range compounds {
		for _, u := range c.units {
			for lo, hi := range u.ranges {
				bounds = append(bounds, lo, hi+1)
			}
		}
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// kindsOf returns the columns without equal ones; which of them is that of each character
// of ASCII; and of the others each first character that has another one than those before
// it, and that. Bounds are those of the columns.
func kindsOf(bounds []rune, columns [][]uint64) (kinds [][]uint64, ascii [utf8.RuneSelf]uint8, wide []int) {
	for i, column := range columns {
		kind := slices.IndexFunc(kinds, func(known []uint64) bool { return slices.Equal(known, column) })
		if kind < 0 {
			kind = len(kinds)
			kinds = append(kinds, column)
		}
		for c := bounds[i]; c < utf8.RuneSelf && (i+1 == len(bounds) || c < bounds[i+1]); c++ {
			ascii[c] = uint8(kind) //nolint:gosec // no more than there are characters of ASCII
		}
		if i+1 == len(bounds) || bounds[i+1] > utf8.RuneSelf {
			wide = append(wide, int(bounds[i]), kind)
		}
	}
	return kinds, ascii, wide
}

func set(places []uint64, place int) { places[place/64] |= 1 << (place % 64) }
