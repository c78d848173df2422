package glob

import (
	"slices"
	"unicode/utf8"
)

// places returns the number of bits of c in a state. A state has one bit before each unit and one
// at the end.
func (c *compound) places() int { return len(c.units) + 1 }

// wordsOf returns the number of words in a state of the automaton of compounds.
func wordsOf(compounds []compound) int {
	places := 0
	for i := range compounds {
		places += compounds[i].places()
	}
	return words(places)
}

func words(places int) int { return (places + 63) / 64 }

// newAutomaton returns the [automaton] of compounds. The compounds have the same prefix and are in
// the order of their indices.
func newAutomaton(compounds []compound) automaton {
	a := automaton{prefixGroup: compounds[0].prefixGroup, words: wordsOf(compounds)}
	a.ends = make([]end, 0, len(compounds))
	var runs [128]rune
	bounds := boundsOf(runs[:0], compounds)
	var space [columnSets + len(runs)]uint64 // nearly every automaton has one word
	sets := space[:]
	if n := (columnSets + len(bounds)) * a.words; n > len(space) {
		sets = make([]uint64, n)
	}
	start, sets := cut(sets, a.words)
	stars, sets := cut(sets, a.words)
	supers, columns := cut(sets, a.words)
	place := 0
	for _, c := range compounds {
		set(start, place)
		if c.units[0].star != noStar { // a star may match nothing; two stars never follow each other
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
					set(columns[i*a.words:], place)
				}
			}
			place++
		}
		a.ends = append(a.ends, end{place, c.index})
		place++
	}
	kinds := a.setKinds(bounds, columns)
	a.sets = slices.Concat(start, stars, supers, kinds)
	return a
}

// boundsOf cuts all characters into runs. All characters of a run match the same units of
// compounds. It appends the first character of each run to bounds, ascending.
func boundsOf(bounds []rune, compounds []compound) []rune {
	var low [utf8.RuneSelf + 1]bool
	var high []rune
	low[0] = true
	for _, c := range compounds {
		for _, u := range c.units {
			if u.isLiteral() && u.lit < utf8.RuneSelf {
				low[u.lit], low[u.lit+1] = true, true
				continue
			}
			for lo, hi := range u.ranges {
				for _, r := range [...]rune{lo, hi + 1} {
					if r <= utf8.RuneSelf {
						low[r] = true
					} else {
						high = append(high, r)
					}
				}
			}
		}
	}
	for r, is := range low {
		if is {
			bounds = append(bounds, rune(r)) //nolint:gosec // at most utf8.RuneSelf
		}
	}
	slices.Sort(high)
	return append(bounds, slices.Compact(high)...)
}

// setKinds sets the column of each character and returns the distinct columns, in the memory of columns. Element i
// of bounds is the first character of the run that column i belongs to.
func (a *automaton) setKinds(bounds []rune, columns []uint64) []uint64 {
	kinds := 0
	wide, _ := slices.BinarySearch(bounds, utf8.RuneSelf+1)
	a.wide = make([]run, 0, len(bounds)-wide+1)
	for i := range bounds {
		column, kind := columns[i*a.words:(i+1)*a.words], 0
		for kind < kinds && (columns[kind*a.words] != column[0] ||
			!slices.Equal(columns[kind*a.words:(kind+1)*a.words], column)) {
			kind++
		}
		if kind == kinds {
			copy(columns[kind*a.words:], column)
			kinds++
		}
		for c := bounds[i]; c < utf8.RuneSelf && (i+1 == len(bounds) || c < bounds[i+1]); c++ {
			a.ascii[c] = uint8(kind) //nolint:gosec // at most 128, one for each ASCII character
		}
		if i+1 == len(bounds) || bounds[i+1] > utf8.RuneSelf {
			a.wide = append(a.wide, run{bounds[i], kind})
		}
	}
	return columns[:kinds*a.words]
}

func set(places []uint64, place int) { places[place/64] |= 1 << (place % 64) }
