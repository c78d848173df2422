package glob

import (
	"fmt"
	classes "regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gobwas/glob"
	"github.com/gobwas/glob/syntax"
)

// unit is a literal character of a pattern or, where glob is not empty, one of
// its wildcards or classes as it is written.
type unit struct {
	lit   rune
	glob  string
	class *class // what a unit that is neither literal nor a star matches one of
}

// class is a set of characters: a regular expression, and the first and last ones
// of their ranges, sorted.
type class struct {
	expr   string
	ranges []rune
}

func (u unit) isLiteral() bool { return u.glob == "" }
func (u unit) isSuper() bool   { return u.glob == "**" }
func (u unit) isStar() bool    { return u.glob == "*" || u.glob == "**" }

// escaped marks the unit of an escape: the unit of %2F is escaped | 0x2F.
const escaped = 0x200000

// anyOne is the unit of ?.
var anyOne, _ = oneOf("?", "[^/]")

// oneOf returns the unit that matches one character of expr, a class.
func oneOf(glob, expr string) (unit, bool) {
	re, err := classes.Parse(expr, classes.Perl)
	if err != nil || len(re.Rune) == 0 {
		return unit{}, false
	}
	ranges := re.Rune
	if re.Op == classes.OpLiteral {
		ranges = []rune{ranges[0], ranges[0]}
		// A class of both cases of a letter, such as [aA], is one literal without case.
		for r := unicode.SimpleFold(ranges[0]); re.Flags&classes.FoldCase != 0 && r != ranges[0]; r = unicode.SimpleFold(r) {
			ranges = append(ranges, r, r) // upper case, which is first, is the least
		}
	}
	return unit{glob: glob, class: &class{expr, ranges}}, true
}

// coalesce returns units with every run of * and ** as one of them. Without it
// two alternatives that meet, as in {*,a}*, would be written as **.
func coalesce(units []unit) []unit {
	var merged []unit
	for _, u := range units {
		n := len(merged)
		switch {
		case n == 0 || !u.isStar() || !merged[n-1].isStar():
			merged = append(merged, u)
		case u.isSuper():
			merged[n-1] = u
		}
	}
	return merged
}

// literalPrefix returns the literal that units start with, and how many of them
// that is.
func literalPrefix(units []unit) (string, int) {
	var b strings.Builder
	for i, u := range units {
		if !u.isLiteral() {
			return b.String(), i
		}
		u.write(&b)
	}
	return b.String(), len(units)
}

// write writes a literal unit as it stands in a text.
func (u unit) write(b *strings.Builder) {
	if u.lit >= escaped {
		fmt.Fprintf(b, "%%%02X", u.lit-escaped)
		return
	}
	b.WriteRune(u.lit)
}

// parsePattern returns the alternatives that pattern stands for, none of which
// has a brace any more, or what is wrong with it.
func parsePattern(pattern string) ([][]unit, string) {
	if problem := checkPattern(pattern); problem != "" {
		return nil, problem
	}
	if _, err := glob.Compile(pattern, '/'); err != nil {
		return nil, strings.TrimPrefix(err.Error(), "glob: ")
	}
	p := patternParser{source: pattern, lex: syntax.NewLexer(pattern)}
	alternatives := p.sequence(0)
	for i, units := range alternatives {
		alternatives[i] = coalesce(units)
		stars := 0
		for _, u := range alternatives[i] {
			if u.isStar() {
				stars++
			}
		}
		if stars > maxStars {
			p.fail("has more than 32 wildcards")
		}
	}
	return alternatives, p.problem
}

// checkPattern refuses what is not a mistake to the glob library but hardly
// means what it says.
func checkPattern(pattern string) string {
	switch {
	case pattern == "":
		return "is empty"
	case len(pattern) > MaxLength:
		return "is longer than 1024 bytes"
	case !utf8.ValidString(pattern):
		return "is not valid UTF-8"
	case strings.TrimSpace(pattern) != pattern:
		return "starts or ends with white space, which no resource does"
	}
	escaped, wildcards, prev := false, 0, rune(0)
	for _, r := range pattern {
		switch {
		case unicode.IsControl(r):
			return "has a control character, which no resource has"
		case escaped && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			return `has a \ before a letter or digit: \ escapes the next character; write / between path segments`
		case strings.ContainsRune("?[{", r) || r == '*' && prev != '*':
			wildcards++
		}
		escaped, prev = r == '\\' && !escaped, r
	}
	if wildcards > maxWildcards {
		return "has more than 128 wildcards, classes and groups"
	}
	return ""
}

// patternParser expands a pattern that the glob library accepts.
type patternParser struct {
	source  string
	lex     *syntax.Lexer
	problem string
	copied  int // characters, for alternatives
}

// sequence parses up to the end of the pattern or, within braces, of the
// group, whose alternatives it returns together.
func (p *patternParser) sequence(depth int) [][]unit {
	if depth > maxNested {
		p.fail("nests more than 8 groups of alternatives")
	}
	var done [][]unit
	current := [][]unit{nil}
	for p.problem == "" {
		start := p.lex.Offset()
		var next [][]unit
		switch token := p.lex.Next(); token.Type {
		case syntax.EOF, syntax.TermsClose:
			return append(done, current...)
		case syntax.TermSeparator:
			done, current = append(done, current...), [][]unit{nil}
			continue
		case syntax.TermsOpen:
			next = p.sequence(depth + 1)
		case syntax.RangeOpen:
			next = [][]unit{{p.class(start)}}
		case syntax.Text:
			var text []unit
			for _, r := range token.Data {
				text = append(text, unit{lit: r})
			}
			next = [][]unit{text}
		case syntax.Any, syntax.Super:
			next = [][]unit{{{glob: token.Data}}}
		case syntax.Single:
			next = [][]unit{{anyOne}}
		default:
			p.fail("is not understood")
		}
		current = p.product(current, next)
	}
	return nil
}

func (p *patternParser) product(heads, tails [][]unit) [][]unit {
	if len(heads)*len(tails) > maxSpellings {
		p.fail("stands for more than 256 alternatives")
		return nil
	}
	if len(heads) == 1 && len(tails) == 1 {
		return [][]unit{append(heads[0], tails[0]...)} // nothing else continues this head
	}
	all := make([][]unit, 0, len(heads)*len(tails))
	for _, head := range heads {
		for _, tail := range tails {
			all = append(all, slices.Concat(head, tail))
			p.copied += len(head) + len(tail)
		}
		if p.copied > maxSpelled/2 {
			p.fail("stands for too much text: give fewer alternatives, or put them at the end")
			return nil
		}
	}
	return all
}

// class parses a character class whose opening bracket has been read.
func (p *patternParser) class(start int) unit {
	source := p.source[start:p.lex.Offset()]
	if strings.HasPrefix(source, "[^") {
		p.fail("has a class that starts with ^, which does not negate: write [!…]")
	}
	var b strings.Builder
	b.WriteByte('[')
	for {
		switch token := p.lex.Next(); token.Type {
		case syntax.RangeClose:
			u, ok := oneOf(source, b.String()+"]")
			if !ok {
				p.fail("has a class that is not understood")
			}
			return u
		case syntax.Not:
			b.WriteByte('^')
		case syntax.RangeBetween:
			b.WriteByte('-')
		case syntax.RangeLo, syntax.RangeHi, syntax.Text:
			for _, r := range token.Data {
				if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					b.WriteByte('\\') // so that it means itself
				}
				b.WriteRune(r)
			}
		default:
			p.fail("has a class that is not understood")
			return unit{}
		}
	}
}

func (p *patternParser) fail(problem string) {
	if p.problem == "" {
		p.problem = problem
	}
}
