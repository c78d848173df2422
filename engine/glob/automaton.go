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
	bounds := boundsOf(compounds)
	sets, all := make([][]uint64, columnSets+len(bounds)), make([]uint64, (columnSets+len(bounds))*a.words)
	for i := range sets {
		sets[i], all = cut(all, a.words)
	}
	columns := sets[columnSets:]
	place := 0
	for _, c := range compounds {
		set(sets[startSet], place)
		if c.units[0].star != noStar { // a star may match nothing; two stars never follow each other
			set(sets[startSet], place+1)
		}
		for _, u := range c.units {
			if u.star != noStar {
				set(sets[starSet], place)
			}
			if u.star == superStar {
				set(sets[superSet], place)
			}
			for lo, hi := range u.ranges {
				first, _ := slices.BinarySearch(bounds, lo)
				for i := first; i < len(bounds) && bounds[i] <= hi; i++ {
					set(columns[i], place)
				}
			}
			place++
		}
		a.ends = append(a.ends, end{place, c.index})
		place++
	}
	kinds := a.setKinds(bounds, columns)
	a.sets = slices.Concat(append(sets[:columnSets:columnSets], kinds...)...)
	a.ends, a.wide = slices.Clone(a.ends), slices.Clone(a.wide)
	return a
}

// boundsOf cuts all characters into runs. All characters of a run match the same units of
// compounds. It returns the first character of each run, ascending.
func boundsOf(compounds []compound) []rune {
	bounds := append(make([]rune, 0, 1+2*wordsOf(compounds)*64), 0)
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

// setKinds sets the column of each character and returns the distinct columns. Element i of bounds
// is the first character of the run that columns[i] belongs to.
func (a *automaton) setKinds(bounds []rune, columns [][]uint64) (kinds [][]uint64) {
	for i, column := range columns {
		kind := slices.IndexFunc(kinds, func(known []uint64) bool { return slices.Equal(known, column) })
		if kind < 0 {
			kind = len(kinds)
			kinds = append(kinds, column)
		}
		for c := bounds[i]; c < utf8.RuneSelf && (i+1 == len(bounds) || c < bounds[i+1]); c++ {
			a.ascii[c] = uint8(kind) //nolint:gosec // at most 128, one for each ASCII character
		}
		if i+1 == len(bounds) || bounds[i+1] > utf8.RuneSelf {
			a.wide = append(a.wide, run{bounds[i], kind})
		}
	}
	return kinds
}

func set(places []uint64, place int) { places[place/64] |= 1 << (place % 64) }
