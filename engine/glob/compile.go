package glob

import (
	"encoding/binary"
	"math"
	"sort"
	"unicode/utf8"

	"writ/engine/resource"
)

// Compile compiles patterns for resources, for the side that their match is for. Those of
// a block also match without regard to compatibility characters and, for Windows and
// addresses, case. Its error is a *[PatternError].
func Compile(patterns []string, side resource.Side) (*List, error) {
	return compile(patterns, side, spellingsOf, maxSpelled)
}

// Exactly compiles a list of resources that match no others.
func Exactly(resources []string, side resource.Side) (*List, error) {
	return compile(resources, side, quoted, maxSpelled)
}

// CompileSet compiles patterns that are matched as they are written: for strings that
// are no resources, such as agent ids and metadata. Its error is a *[PatternError].
func CompileSet(patterns []string) (*List, error) {
	return compile(patterns, 0, plain, math.MaxInt)
}

func compile(patterns []string, side resource.Side, spell speller, left int) (*List, error) {
	l, mistakes := build(patterns, side, spell, left, 1)
	if len(mistakes) > 0 {
		return nil, mistakes[0]
	}
	return l, nil
}

// Check returns what is wrong with the patterns, at most limit mistakes.
func Check(patterns []string, side resource.Side, limit int) []*PatternError {
	_, mistakes := build(patterns, side, spellingsOf, maxSpelled, limit)
	return mistakes
}

const tooMuchText = "stands, with those before it, for more than 131072 characters in all their alternatives and readings"

// build compiles a list without the patterns that are mistakes, which has left characters
// at most.
func build(patterns []string, side resource.Side, spell speller, left, limit int) (*List, []*PatternError) {
	b := builder{flat: make([]byte, listHeader)}
	var mistakes []*PatternError
	for i, pattern := range patterns {
		spellings, problem := spell(pattern, side, left)
		for _, s := range spellings {
			if left -= len(s.units); left < 0 {
				problem = tooMuchText
				break
			}
			b.add(i, s)
		}
		if problem == "" {
			continue
		}
		mistakes = append(mistakes, &PatternError{Index: i, Problem: problem})
		if problem == tooMuchText || len(mistakes) == limit {
			return nil, mistakes
		}
	}
	n := sort.Search(len(b.compounds), func(n int) bool { return chain(b.compounds[:n+1]) > maxChain })
	if n < len(b.compounds) {
		const problem = "has, with those before it that one resource can meet too, more than 4096 characters after the first of several wildcards"
		return nil, append(mistakes, &PatternError{Index: b.compounds[n].index, Problem: problem})
	}
	return b.list(), mistakes
}

// builder makes a [List].
type builder struct {
	flat      []byte // room for the header; the texts
	programs  []byte
	compounds []compound
}

// compound is one spelling of a pattern whose wildcards need an automaton.
type compound struct {
	meeting

	index int
	units []unit // after the prefix
}

// meeting is what compounds of one automaton share: each text that they all can match
// begins with the prefix.
type meeting struct {
	readers resource.Reader
	prefix  string
}

func (b *builder) add(index int, s spelling) {
	literal, n := literalPrefix(s.units)
	rest := s.units[n:]
	kind, suffix := noStar, ""
	if len(rest) > 0 {
		kind = rest[0].star
		var tail int
		if suffix, tail = literalPrefix(rest[1:]); kind == noStar || 1+tail < len(rest) {
			b.compounds = append(b.compounds, compound{meeting{s.readers, literal}, index, rest})
			return
		}
	}
	b.programs = appendInts(b.programs, len(b.flat), len(literal), len(suffix)<<suffixAt|int(s.readers)<<readersAt|int(kind), index)
	var tail [tailSize]byte
	if n := len(literal) - tailSize; n >= 0 {
		copy(tail[:], literal[n:])
	}
	b.programs = append(b.programs, tail[:]...)
	b.flat = append(append(b.flat, literal...), suffix...)
}

func (b *builder) list() *List {
	var order []meeting
	meetings := make(map[meeting][]compound)
	for _, c := range b.compounds {
		if meetings[c.meeting] == nil {
			order = append(order, c.meeting)
		}
		meetings[c.meeting] = append(meetings[c.meeting], c)
	}
	size := 0
	var automata []byte
	for _, m := range order {
		compounds := meetings[m]
		size += wordsOf(compounds)
		automata = appendInts(automata, len(b.flat), compounds[0].index, int(m.readers))
		b.flat = appendAutomaton(b.flat, compounds)
	}
	appendInts(b.flat[:0], len(b.programs)/programSize, len(order), size, len(b.flat))
	return &List{string(append(append(b.flat, b.programs...), automata...))}
}

// appendInts appends numbers that [flat.Int] reads: counts, places or characters, of
// which the limits of a list allow far fewer than fit.
func appendInts(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, uint32(n)) //nolint:gosec // see above
	}
	return b
}

// cost is what c takes of [maxChain], in places: its own, and more for each unit beyond
// ASCII, which adds columns.
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

// chain returns the greatest cost of compounds that one reading can meet, in whole words
// of the state: the prefix of each is then a prefix of the next one's.
func chain(compounds []compound) int {
	costs := make(map[meeting]int)
	for i := range compounds {
		costs[compounds[i].meeting] += compounds[i].cost()
	}
	most := 0
	for m := range costs {
		sum := 0
		for n := range len(m.prefix) + 1 {
			sum += 64 * words(costs[meeting{m.readers, m.prefix[:n]}])
		}
		most = max(most, sum)
	}
	return most
}
