package glob

import (
	"slices"
	"strings"
	"unicode"

	"writ.example/writ/engine/resource"
)

// Shape is a pattern that can be compared with other patterns. side is the side of the pattern's
// list.
type Shape struct {
	spellings []spelling
	side      resource.Side
}

// ShapeOf returns the shape of a pattern. If the pattern does not compile, the shape is empty.
func ShapeOf(pattern string, side resource.Side) Shape { return shapeOf(pattern, side, spellingsOf) }

// ExactShape returns the shape of a resource that [Exactly] compiles.
func ExactShape(text string, side resource.Side) Shape { return shapeOf(text, side, quoted) }

// PlainShape returns the shape of a pattern that [CompileSet] compiles. The shape is empty if the
// pattern has a %. In such texts a % may begin one character or several.
func PlainShape(pattern string) Shape {
	if strings.Contains(pattern, "%") {
		return Shape{}
	}
	return shapeOf(pattern, resource.ForBlock, plain) // on this side a * ends only at slashes
}

func shapeOf(text string, side resource.Side, spell speller) Shape {
	spellings, problem := spell(nil, text, side, maxSpelled)
	if problem != "" {
		return Shape{}
	}
	for i := range spellings {
		spellings[i].units = spellings[i].all()
	}
	return Shape{spellings, side}
}

// Prefixes yields the literal beginning of each spelling of s. If t covers s, some spelling of t
// has a literal beginning that is a prefix of it.
func (s Shape) Prefixes(yield func(prefix string) bool) {
	for _, p := range s.spellings {
		if prefix, _ := literalPrefix(p.units); !yield(prefix) {
			return
		}
	}
}

// Covers reports whether, for each reader, s matches everything that t matches. A true result is
// certain. After a false result s may still cover t. Both shapes must have the same side.
func (s Shape) Covers(t Shape) bool {
	return s.covers(t, resource.All)
}

// Beats reports whether s, of a block, matches every resource of which t, of an allowance, matches
// a reading. A true result is certain, as for [Shape.Covers]. A block looks at all readings of an
// allowance, and also at the text as written.
func (s Shape) Beats(t Shape) bool { return s.covers(t, resource.All&^resource.Raw) }

func (s Shape) covers(t Shape, readers resource.Reader) bool {
	stops := []resource.Stops{resource.StopsAtSlash, resource.StopsInList, resource.StopsAtAt}
	if s.side == resource.ForBlock { // on this side a * ends only at slashes
		stops = stops[:1]
	}
	for _, p := range t.spellings {
		for _, at := range stops {
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

// includes reports whether q matches everything that p matches. It runs q on p as if p were a text.
// Each wildcard of p is a character that only wildcards match.
func includes(q, p []unit, stops resource.Stops) bool {
	if slices.EqualFunc(q, p, sameUnit) {
		return true
	}
	if splitsEscapes(p) {
		prefix, n := literalPrefix(q)
		other, _ := literalPrefix(p)
		return n == len(q)-1 && q[n].star == superStar && strings.HasPrefix(other, prefix)
	}
	state := make([]bool, len(q)+1) // the places of q that can be reached after the units of p so far
	state[0] = true
	for i := 0; ; i++ {
		for k, v := range q {
			state[k+1] = state[k+1] || state[k] && v.star != noStar // a star also matches nothing
		}
		if i == len(p) {
			return state[len(q)]
		}
		next := make([]bool, len(q)+1)
		for k, v := range q {
			next[k] = next[k] || state[k] && v.star != noStar && v.absorbs(p[i], stops)
			next[k+1] = state[k] && v.star == noStar && v.holds(p[i])
		}
		state = next
	}
}

func sameUnit(u, v unit) bool {
	return u.lit == v.lit && u.star == v.star &&
		(u.class == v.class || u.class != nil && v.class != nil && u.class.expr == v.class.expr)
}

// splitsEscapes reports whether p can match a text by cutting an escape of the text in two. A
// program with one star can do this, because its star ends wherever the suffix begins.
func splitsEscapes(p []unit) bool {
	_, n := literalPrefix(p)
	if n == len(p) || p[n].star == noStar || n+1 == len(p) {
		return false
	}
	suffix, m := literalPrefix(p[n+1:])
	return m == len(p)-n-1 && strings.IndexByte("0123456789ABCDEFabcdef", suffix[0]) >= 0
}

// absorbs reports whether the star u matches everything that v matches. v may be any unit.
func (u unit) absorbs(v unit, stops resource.Stops) bool {
	if u.star == superStar || v.star != noStar {
		return u.star >= v.star
	}
	for lo, hi := range v.ranges {
		if lo < hi && hi > unicode.MaxLatin1 && stops == resource.StopsInList {
			return false // the range may include white space or an escape
		}
		for r := lo; r <= max(lo, min(hi, unicode.MaxLatin1)); r++ {
			if stopsStar(r, stops) {
				return false
			}
		}
	}
	return true
}

// holds reports whether the literal or class u matches everything that v matches. It returns false
// if v is a star.
func (u unit) holds(v unit) bool {
	for lo, hi := range v.ranges {
		spans := false
		for first, last := range u.ranges {
			spans = spans || first <= lo && hi <= last
		}
		if !spans {
			return false
		}
	}
	return v.star == noStar
}
