package glob

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"writ/engine/resource"
)

// Shape is a pattern as a list of one use has it, to be compared with others.
type Shape struct {
	spellings []spelling
	// stops are where a * can end in such a list.
	stops []resource.Stops
}

// stops returns where a * of a list can end.
func (u Use) stops() []resource.Stops {
	if u == Blocks {
		return []resource.Stops{resource.StopsAtSlash}
	}
	return []resource.Stops{resource.StopsAtSlash, resource.StopsInList, resource.StopsAtAt}
}

// ShapeOf returns the shape of a pattern that compiles, and an empty one of any other.
func ShapeOf(pattern string, use Use) Shape {
	spellings, problem := spellingsOf(pattern, use, maxSpelled)
	if problem != "" {
		return Shape{}
	}
	return Shape{spellings, use.stops()}
}

// ExactShape is [ShapeOf] for a resource of [Exactly].
func ExactShape(text string, use Use) Shape {
	spellings, problem := quoted(text, use, maxSpelled)
	if problem != "" {
		return Shape{}
	}
	return Shape{spellings, use.stops()}
}

// PlainShape is [ShapeOf] for a pattern of a [Set]. That of one with a % is empty: in
// a text that is no reading, what a % begins may be one character or several.
func PlainShape(pattern string) Shape {
	alternatives, problem := parsePattern(pattern)
	if problem != "" || strings.Contains(pattern, "%") {
		return Shape{}
	}
	s := Shape{stops: Blocks.stops()}
	for _, units := range alternatives {
		s.spellings = append(s.spellings, spelling{resource.All, units})
	}
	return s
}

// Prefixes yields what each spelling of s starts with. A shape that covers s has, for
// each of them, a spelling that starts with the same text or less of it.
func (s Shape) Prefixes(yield func(prefix string) bool) {
	for _, p := range s.spellings {
		if prefix, _ := literalPrefix(p.units); !yield(prefix) {
			return
		}
	}
}

// Covers reports whether s matches, to each reader, all that t does. It may say no of
// a shape that is covered, never yes of one that is not. Both are of the same use.
func (s Shape) Covers(t Shape) bool {
	return s.covers(t, resource.All)
}

// Beats reports whether s, of a list that blocks, matches every resource that has a
// reading that t matches, of a list that allows. It errs as [Shape.Covers] does. A
// block looks at all that an allowance does, and at the text as it was written.
func (s Shape) Beats(t Shape) bool { return s.covers(t, resource.All&^resource.Raw) }

func (s Shape) covers(t Shape, readers resource.Reader) bool {
	for _, p := range t.spellings {
		for _, at := range s.stops {
			left := p.readers & readers
			for _, q := range s.spellings {
				if left&q.readers != 0 && includes(q.units, p.units, at) {
					left &^= q.readers
				}
			}
			if left != 0 {
				return false
			}
		}
	}
	return len(s.spellings) > 0 && len(t.spellings) > 0
}

// includes reports whether q matches all that p does. It asks q of p as a text in which
// each wildcard of p is one letter that wildcards alone match.
func includes(q, p []unit, stops resource.Stops) bool {
	if slices.EqualFunc(q, p, sameUnit) {
		return true
	}
	if splitsEscapes(p) {
		prefix, n := literalPrefix(q)
		other, _ := literalPrefix(p)
		return n == len(q)-1 && q[n].isSuper() && strings.HasPrefix(other, prefix)
	}
	state := make([]bool, len(q)+1)
	state[0] = true
	open(state, q)
	for _, u := range p {
		next := make([]bool, len(q)+1)
		for i, v := range q {
			switch {
			case !state[i]:
			case v.isStar():
				next[i] = v.absorbs(u, stops)
			case v.holds(u):
				next[i+1] = true
			}
		}
		open(next, q)
		state = next
	}
	return state[len(q)]
}

// open adds the places behind stars, which may match nothing.
func open(state []bool, q []unit) {
	for i, v := range q {
		if state[i] && v.isStar() {
			state[i+1] = true
		}
	}
}

func sameUnit(u, v unit) bool {
	return u.lit == v.lit && u.glob == v.glob && (u.class == nil) == (v.class == nil) &&
		(u.class == nil || u.class.expr == v.class.expr)
}

// splitsEscapes reports whether p can match a text by cutting one of its escapes in
// two: a program ends its only star wherever the text behind it begins.
func splitsEscapes(p []unit) bool {
	_, n := literalPrefix(p)
	if n == len(p) || !p[n].isStar() || n+1 == len(p) {
		return false
	}
	suffix, m := literalPrefix(p[n+1:])
	return m == len(p)-n-1 && strings.IndexByte("0123456789ABCDEFabcdef", suffix[0]) >= 0
}

// absorbs reports whether the star u matches whatever v does.
func (u unit) absorbs(v unit, stops resource.Stops) bool {
	switch {
	case u.isSuper():
		return true
	case v.isStar():
		return !v.isSuper()
	case v.isLiteral():
		return v.lit != '/' && !stopsOne(v.lit, stops)
	case v.othersToo() && stops == resource.StopsInList: // which has white space and an escape that stop
		return false
	}
	for i := 0; i < len(v.class.ranges); i += 2 {
		for r := v.class.ranges[i]; r <= min(v.class.ranges[i+1], unicode.MaxLatin1); r++ {
			if r == '/' || stopsOne(r, stops) {
				return false
			}
		}
		if stops == resource.StopsInList && v.class.ranges[i+1] > unicode.MaxLatin1 {
			return false // white space may be among them
		}
	}
	return true
}

func stopsOne(r rune, stops resource.Stops) bool {
	return stops != resource.StopsAtSlash && stopsAt(r, stops)
}

// othersToo reports whether the class of u matches all that is not ASCII, escapes too:
// see [automaton.add].
func (u unit) othersToo() bool {
	n := len(u.class.ranges)
	return u.class.ranges[n-2] <= utf8.RuneSelf && u.class.ranges[n-1] == unicode.MaxRune
}

// holds reports whether the literal or class u matches whatever v does, which is no star
// if it is to. A class that has the last range of [unit.othersToo] has all of it.
func (u unit) holds(v unit) bool {
	switch {
	case v.isStar():
		return false
	case u.isLiteral():
		return v.isLiteral() && u.lit == v.lit
	case v.isLiteral() && v.lit >= utf8.RuneSelf && u.othersToo():
		return true
	case v.isLiteral():
		return inRanges(u.class.ranges, v.lit)
	}
	for i := 0; i < len(v.class.ranges); i += 2 {
		if lo, hi := v.class.ranges[i], v.class.ranges[i+1]; !u.spans(lo, hi) {
			return false
		}
	}
	return true
}

// spans reports whether the class of u has all characters from lo to hi.
func (u unit) spans(lo, hi rune) bool {
	for i := 0; i < len(u.class.ranges); i += 2 {
		if u.class.ranges[i] <= lo && hi <= u.class.ranges[i+1] {
			return true
		}
	}
	return false
}
