package glob

import (
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"writ.example/writ/engine/resource"
)

// This package has these limits.
const (
	// MaxLength is the greatest length of a pattern in bytes.
	MaxLength = 1024
	// maxSpellings bounds the spellings of one pattern. A pattern has a spelling for each of its
	// alternatives in each reading.
	maxSpellings = 256
	// maxSpelled bounds the number of characters in all alternatives of a list in all readings.
	// Compiling takes about a microsecond for each character. Expanding one pattern copies at most
	// half as many characters.
	maxSpelled = 128 << 10
	// maxWildcards bounds the number of wildcards, classes and groups of a pattern together. It
	// also bounds the depth of groups. The glob library takes time quadratic in this number.
	maxWildcards = 128
	// maxChain bounds the work of matching one text. The bound counts the places of all compounds
	// whose literal prefixes can begin the same text.
	maxChain = 4096
)

// Compile compiles patterns of resources for a side, which is a block or an allowance. Patterns of
// a block also ignore differences of compatibility characters. For Windows and addresses they
// ignore case, too. The error is a *[PatternError].
func Compile(patterns []string, side resource.Side) (*List, error) {
	return compileFor(patterns, side, spellingsOf)
}

// Exactly compiles resources as patterns without wildcards.
func Exactly(resources []string, side resource.Side) (*List, error) {
	return compileFor(resources, side, quoted)
}

// CompileSet compiles patterns for strings that are not resources, such as agent ids and metadata.
// They are matched as written. The error is a *[PatternError].
func CompileSet(patterns []string) (*List, error) {
	return compile(patterns, 0, plain, math.MaxInt)
}

// compileFor returns an error for a missing side, even if the list is empty.
func compileFor(patterns []string, side resource.Side, spell speller) (*List, error) {
	if side != resource.ForBlock && side != resource.ForAllow {
		return nil, &PatternError{Problem: "is neither for a block nor for an allowance"}
	}
	return compile(patterns, side, spell, maxSpelled)
}

func compile(patterns []string, side resource.Side, spell speller, left int) (*List, error) {
	l, mistakes := build(patterns, side, spell, left, 1)
	if len(mistakes) > 0 {
		return nil, mistakes[0]
	}
	return l, nil
}

// Check returns up to limit mistakes in patterns.
func Check(patterns []string, side resource.Side, limit int) []*PatternError {
	_, mistakes := build(patterns, side, spellingsOf, maxSpelled, limit)
	return mistakes
}

const tooMuchText = "stands, with those before it, for more than 131072 characters in all their alternatives and " +
	"readings"

// build compiles patterns and returns up to limit mistakes in them. All spellings together may have
// up to left characters.
func build(patterns []string, side resource.Side, spell speller, left, limit int) (*List, []*PatternError) {
	b := newBuilder(patterns)
	b.list.side = side
	var mistakes []*PatternError
	var spellings []spelling
	for i, pattern := range patterns {
		var problem string
		spellings, problem = spell(spellings[:0], pattern, side, left)
		for _, s := range spellings {
			if left -= s.len(); left < 0 {
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
		const problem = "has, with those before it that one resource can meet too, more than 4096 characters after " +
			"the first of several wildcards"
		return nil, append(mistakes, &PatternError{Index: b.compounds[n].index, Problem: problem})
	}
	return b.finish(), mistakes
}

type builder struct {
	list      List
	texts     []byte
	compounds []compound
	// actions is set for action types. Then a suffix may begin inside an escape: see [actionUnits].
	actions bool
}

// compound is a spelling that needs an automaton, because it has more wildcards than a [program]
// can match.
type compound struct {
	prefixGroup

	index int
	units []unit // the units after the prefix
}

// prefixGroup is the key of an automaton. Its compounds have the same readers and the same literal
// prefix.
type prefixGroup struct {
	readers resource.Reader
	prefix  string
}

// newBuilder returns a builder with the memory that most lists of entries take.
func newBuilder(entries []string) builder {
	size := 0
	for _, s := range entries {
		size += len(s)
	}
	return builder{list: List{programs: make([]program, 0, len(entries))}, texts: make([]byte, 0, size)}
}

func (b *builder) add(index int, s spelling) {
	if s.text != "" {
		b.addText(index, s)
		return
	}
	n := literals(s.units)
	rest, kind, at := s.units[n:], noStar, len(b.texts)
	b.texts = appendLiteral(b.texts, s.units[:n])
	end := len(b.texts)
	if len(rest) > 0 {
		kind = rest[0].star
		tail := literals(rest[1:])
		b.texts = appendLiteral(b.texts, rest[1:1+tail])
		if kind == noStar || 1+tail < len(rest) || b.actions && inEscape(string(b.texts[end:])) {
			group := prefixGroup{s.readers, string(b.texts[at:end])}
			b.texts, b.compounds = b.texts[:at], append(b.compounds, compound{group, index, rest})
			return
		}
	}
	b.put(index, s.readers, kind, at, end)
}

// addText adds a spelling with a text, like add with the text's units.
func (b *builder) addText(index int, s spelling) {
	n := strings.IndexByte(s.text, '*')
	if one := strings.IndexByte(s.text, '?'); one >= 0 && (n < 0 || one < n) {
		n = one
	}
	literal, suffix, kind := s.text, "", noStar
	if n >= 0 && !s.exact {
		literal, suffix = s.text[:n], strings.TrimLeft(s.text[n:], "*")
		switch len(s.text) - n - len(suffix) {
		case 0:
		case 1:
			kind = oneStar
		default:
			kind = superStar
		}
		if kind == noStar || strings.ContainsAny(suffix, "*?") {
			group := prefixGroup{s.readers, strings.Clone(literal)}
			b.compounds = append(b.compounds, compound{group, index, starred(s.text[n:])})
			return
		}
	}
	at := len(b.texts)
	b.texts = append(append(b.texts, literal...), suffix...)
	b.put(index, s.readers, kind, at, at+len(literal))
}

// addAction adds an action type, like add with its [actionUnits].
func (b *builder) addAction(index int, readers resource.Reader, t string) {
	literal, suffix, wild := strings.Cut(t, "*")
	suffix = strings.TrimLeft(suffix, "*")
	if strings.IndexByte(suffix, '*') >= 0 || strings.IndexByte(t, '%') >= 0 || wild && inEscape(suffix) {
		b.add(index, spelling{readers: readers, units: actionUnits(t)})
		return
	}
	kind, at := noStar, len(b.texts)
	if wild {
		kind = superStar
	}
	b.texts = append(append(b.texts, literal...), suffix...)
	b.put(index, readers, kind, at, at+len(literal))
}

// inEscape reports whether the suffix of an action type may be the end of an escaped %.
func inEscape(suffix string) bool {
	return strings.HasPrefix(suffix, "5") || strings.HasPrefix(suffix, "25")
}

// put adds a program. Its literal is b.texts[at:end], and its suffix is what follows.
func (b *builder) put(index int, readers resource.Reader, kind star, at, end int) {
	p := program{
		//nolint:gosec // see maxSpelled
		at: uint32(at), literal: uint32(end - at), suffix: uint32(len(b.texts) - end),
		index: int32(index), readers: readers, star: kind, //nolint:gosec // fewer patterns than an int32 counts
	}
	if end > at {
		p.last = b.texts[end-1]
	}
	b.list.programs = append(b.list.programs, p)
}

func (b *builder) finish() *List {
	l := b.list // a pointer to b.list would keep b in memory
	if l.texts = string(b.texts); len(l.programs) < cap(l.programs) {
		l.programs = slices.Clone(l.programs)
	}
	for _, group := range b.groups() {
		for compounds := range batches(group) {
			a := newAutomaton(compounds)
			l.words += a.words
			l.automata = append(l.automata, a)
		}
	}
	return &l
}

// groups returns the compounds by their prefixGroup, in the order in which the groups begin.
func (b *builder) groups() (groups [][]compound) {
	index := make(map[prefixGroup]int, len(b.compounds))
	for _, c := range b.compounds {
		i, ok := index[c.prefixGroup]
		if !ok {
			i = len(groups)
			index[c.prefixGroup] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// Pack moves the memory of lists next to each other. If the lists are in no processor cache, a
// match must fetch their cache lines. Adjacent lines take far less time.
func Pack(lists ...*List) {
	var programs, automata, words, size int
	for _, l := range lists {
		programs, automata, size = programs+len(l.programs), automata+len(l.automata), size+len(l.texts)
		for i := range l.automata {
			words += len(l.automata[i].sets)
		}
	}
	all := List{programs: make([]program, 0, programs), automata: make([]automaton, 0, automata)}
	sets := make([]uint64, 0, words)
	var texts strings.Builder
	texts.Grow(size)
	for _, l := range lists {
		all.programs, all.automata = append(all.programs, l.programs...), append(all.automata, l.automata...)
		texts.WriteString(l.texts)
		for i := range l.automata {
			sets = append(sets, l.automata[i].sets...)
		}
	}
	all.texts = texts.String()
	for _, l := range lists {
		l.programs, all.programs = cut(all.programs, len(l.programs))
		l.automata, all.automata = cut(all.automata, len(l.automata))
		l.texts, all.texts = all.texts[:len(l.texts)], all.texts[len(l.texts):]
		for i := range l.automata {
			l.automata[i].sets, sets = cut(sets, len(l.automata[i].sets))
		}
	}
}

func cut[T any](s []T, n int) (first, rest []T) { return s[:n:n], s[n:] }

// batches yields parts of compounds. Each part fits into one state. A list of resources has only
// one part, because of maxChain.
func batches(compounds []compound) iter.Seq[[]compound] {
	return func(yield func([]compound) bool) {
		first, places := 0, 0
		for i := range compounds {
			if places += compounds[i].places(); places > maxChain {
				if !yield(compounds[first:i]) {
					return
				}
				first, places = i, compounds[i].places()
			}
		}
		yield(compounds[first:])
	}
}

// cost returns the share of [maxChain] that c takes. It is the number of places, and more for each
// unit beyond ASCII: such a unit adds columns.
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

// chain returns the greatest total cost of compounds whose prefixes can all begin the same reading.
// The unit is a whole word of the state. If the total cost of all compounds is at most [maxChain], it returns that.
func chain(compounds []compound) int {
	all := 0
	for i := range compounds {
		all += 64 * words(compounds[i].cost())
	}
	if all <= maxChain {
		return all
	}
	costs := make(map[prefixGroup]int)
	for i := range compounds {
		costs[compounds[i].prefixGroup] += compounds[i].cost()
	}
	most := 0
	for m := range costs {
		sum := 0
		for n := range len(m.prefix) + 1 {
			sum += 64 * words(costs[prefixGroup{m.readers, m.prefix[:n]}])
		}
		most = max(most, sum)
	}
	return most
}
