package glob

import "writ/engine/resource"

// Use says what a list of patterns does with the resources that it matches.
type Use bool

// The uses of a list. A list that blocks also looks at patterns without regard to
// compatibility characters and, for Windows and addresses, case.
const (
	Allows Use = false
	Blocks Use = true
)

// List is a compiled list of patterns for resources. It is immutable and safe for
// concurrent use.
type List struct {
	groups []group
}

// group are the patterns as some readers have them. Nearly all patterns are the
// same to all readers that can meet them, so that a list has one group.
type group struct {
	readers resource.Reader
	set     *Set
}

// Compile compiles patterns. Its error is a *[PatternError].
func Compile(patterns []string, use Use) (*List, error) { return compile(patterns, use, spellingsOf) }

// Exactly compiles a list of resources that match no others.
func Exactly(resources []string, use Use) (*List, error) { return compile(resources, use, quoted) }

func compile(patterns []string, use Use, spell speller) (*List, error) {
	l, mistakes := build(patterns, use, spell, 1)
	if len(mistakes) > 0 {
		return nil, mistakes[0]
	}
	return l, nil
}

// Check returns what is wrong with the patterns, at most limit mistakes.
func Check(patterns []string, use Use, limit int) []*PatternError {
	_, mistakes := build(patterns, use, spellingsOf, limit)
	return mistakes
}

const tooMuchText = "stands, with those before it, for more than 131072 characters in all their alternatives and readings"

// build compiles a list without the patterns that are mistakes.
func build(patterns []string, use Use, spell speller, limit int) (*List, []*PatternError) {
	l := &List{}
	var mistakes []*PatternError
	left := maxSpelled
	for i, pattern := range patterns {
		spellings, problem := spell(pattern, use, left)
		for _, s := range spellings {
			if left -= len(s.units); left < 0 {
				problem = tooMuchText
				break
			}
			l.group(s.readers).add(i, s.units)
		}
		if problem == "" {
			continue
		}
		mistakes = append(mistakes, &PatternError{Index: i, Problem: problem})
		if problem == tooMuchText || len(mistakes) == limit {
			return nil, mistakes
		}
	}
	for _, g := range l.groups {
		if err := g.set.build(); err != nil {
			return nil, append(mistakes, err)
		}
	}
	return l, mistakes
}

// group returns the set of the patterns as readers have them.
func (l *List) group(readers resource.Reader) *Set {
	for _, g := range l.groups {
		if g.readers == readers {
			return g.set
		}
	}
	l.groups = append(l.groups, group{readers, &Set{}})
	return l.groups[len(l.groups)-1].set
}

// FirstMatch returns the index of the first pattern that matches a reading of r, and
// whose reading that is, or -1.
func (l *List) FirstMatch(r *resource.Readings) (int, resource.Reader) {
	for i := range r.BlockLen() {
		if index, by := l.MatchAny(r.BlockAt(i)); index >= 0 {
			return index, by
		}
	}
	return -1, 0
}

// Allowed reports whether every reading of r matches a pattern.
func (l *List) Allowed(r *resource.Readings) bool {
	stops := r.Stops()
	for i := range r.AllowLen() {
		if !l.MatchEvery(r.AllowAt(i), stops) {
			return false
		}
	}
	return r.AllowLen() > 0
}

// MatchAny returns the index of the first pattern that matches reading to one of
// its readers, and those readers, or -1.
func (l *List) MatchAny(reading resource.Reading) (int, resource.Reader) {
	first, by := -1, resource.Reader(0)
	for i := range l.groups {
		g := &l.groups[i]
		if g.readers&reading.Readers == 0 {
			continue
		}
		if index := g.set.Match(reading.Text); index >= 0 && (first < 0 || index < first) {
			first, by = index, g.readers&reading.Readers
		}
	}
	return first, by
}

// MatchEvery reports whether reading matches a pattern to each of its readers.
func (l *List) MatchEvery(reading resource.Reading, stops resource.Stops) bool {
	left := reading.Readers
	for i := range l.groups {
		g := &l.groups[i]
		if g.readers&left != 0 && g.set.match(reading.Text, stops) >= 0 {
			left &^= g.readers
		}
	}
	return left == 0
}

// Each yields the index of every pattern that matches reading to one of its readers, in
// no order: a pattern with alternatives can be yielded more than once. A * also ends at
// stops, which are [resource.StopsAtSlash] for a block.
func (l *List) Each(reading resource.Reading, stops resource.Stops, yield func(index int)) {
	for _, g := range l.groups {
		if g.readers&reading.Readers != 0 {
			g.set.each(reading.Text, stops, yield)
		}
	}
}

// Steps bounds what matching s takes.
func (l *List) Steps(s string) int { return l.sum(func(g *Set) int { return g.Steps(s) }) }

// Size returns about how many bytes l keeps on the heap.
func (l *List) Size() int { return listSize + l.sum((*Set).Size) }

// listSize is what a List takes on the heap beside its sets.
const listSize = 64

// Len returns the number of spellings of the patterns.
func (l *List) Len() int { return l.sum((*Set).Len) }

func (l *List) sum(f func(*Set) int) int {
	n := 0
	for _, g := range l.groups {
		n += f(g.set)
	}
	return n
}

// Match returns the index of the first pattern that matches s to some reader, or
// -1: for strings that are no resource of an intent.
func (l *List) Match(s string) int {
	i, _ := l.MatchAny(resource.Reading{Text: s, Readers: resource.All})
	return i
}

// Literals yields what each pattern starts with, as each reader has it, and
// whether that is the whole pattern.
func (l *List) Literals(yield func(literal string, whole bool) bool) {
	for _, g := range l.groups {
		for _, p := range g.set.programs {
			if !yield(p.literal, p.star == "") {
				return
			}
		}
		for _, a := range g.set.automata {
			if !yield(a.prefix, false) {
				return
			}
		}
	}
}
