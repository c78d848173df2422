package glob

import (
	"slices"
	"unsafe"

	"writ/engine/flat"
	"writ/engine/resource"
)

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
	// flat is the list in one piece of memory (see package flat): how many groups it has;
	// the readers, the place and the end of each; the set of each.
	flat string
}

// group are the patterns as some readers have them. Nearly all patterns are the
// same to all readers that can meet them, so that a list has one group.
type group struct {
	readers resource.Reader
	set     Set
}

// Places in a List.
const (
	listHeader = 4
	groupSize  = 12
)

// ListOf returns the list whose [List.Flat] it is given.
func ListOf(block string) List { return List{block} }

// Flat returns the list in one piece of memory, for what is compiled into one with it.
func (l *List) Flat() string { return l.flat }

func (l *List) groups() int { return flat.Int(l.flat, 0) }

func (l *List) group(i int) group {
	at := listHeader + i*groupSize
	return group{
		readers: resource.Reader(flat.Uint32(l.flat, at)), //nolint:gosec // as listBuilder wrote it
		set:     Set{l.flat[flat.Int(l.flat, at+4):flat.Int(l.flat, at+8)]},
	}
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
	var l listBuilder
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
	b, err := l.append(nil)
	if err != nil {
		return nil, append(mistakes, err)
	}
	return &List{string(b)}, mistakes
}

// listBuilder makes a List of the spellings of its patterns, by readers.
type listBuilder struct {
	readers []resource.Reader
	sets    []*setBuilder
}

// group returns the set of the patterns as readers have them.
func (l *listBuilder) group(readers resource.Reader) *setBuilder {
	i := slices.Index(l.readers, readers)
	if i < 0 {
		i = len(l.sets)
		l.readers, l.sets = append(l.readers, readers), append(l.sets, &setBuilder{})
	}
	return l.sets[i]
}

// append appends the [List].
func (l *listBuilder) append(b []byte) ([]byte, *PatternError) {
	at := listHeader + len(l.sets)*groupSize
	b = appendInt(b, len(l.sets))
	var sets []byte
	for i, set := range l.sets {
		start := at + len(sets)
		var err *PatternError
		if sets, err = set.append(sets); err != nil {
			return nil, err
		}
		b = appendInt(appendInt(appendInt(b, int(l.readers[i])), start), at+len(sets))
	}
	return append(b, sets...), nil
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
	for i := range l.groups() {
		g := l.group(i)
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
	for i := range l.groups() {
		g := l.group(i)
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
	for i := range l.groups() {
		g := l.group(i)
		if g.readers&reading.Readers != 0 {
			g.set.each(reading.Text, stops, yield)
		}
	}
}

// Steps bounds what matching s takes.
func (l *List) Steps(s string) int {
	n := 0
	for i := range l.groups() {
		g := l.group(i)
		n += g.set.Steps(s)
	}
	return n
}

// Size returns about how many bytes l keeps on the heap.
func (l *List) Size() int { return int(unsafe.Sizeof(*l)) + len(l.flat) }

// Len returns the number of spellings of the patterns.
func (l *List) Len() int {
	n := 0
	for i := range l.groups() {
		g := l.group(i)
		n += g.set.Len()
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
	for i := range l.groups() {
		g := l.group(i)
		for i := range g.set.programs() {
			if p := g.set.read(g.set.program(i)); !yield(p.literal, p.star == noStar) {
				return
			}
		}
		for i := range g.set.automata() {
			at, _ := g.set.automaton(i)
			if !yield(prefixOf(g.set.flat[at:]), false) {
				return
			}
		}
	}
}
