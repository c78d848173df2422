package glob

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gobwas/glob"
	"github.com/gobwas/glob/syntax"
)

const (
	// MaxLength is the number of bytes that a pattern may have.
	MaxLength = 1024
	// maxSpellings bounds what one pattern expands to: its alternatives, each
	// as all readers have it.
	maxSpellings = 256
	// maxCopied bounds the characters that are copied to expand one pattern's
	// alternatives, maxSpelled those that all alternatives of a list have in all
	// of their readings: compiling takes about a microsecond for each.
	maxCopied             = 64 << 10
	maxSpelled            = 128 << 10
	maxNestedAlternatives = 8
	maxStars              = 32
	// maxWildcards bounds wildcards, classes and groups together: the glob
	// library takes time quadratic in their number to compile a pattern.
	maxWildcards = 128
)

// unit is a literal character of a pattern or, where glob is not empty, one of
// its wildcards or classes as it is written.
type unit struct {
	lit  rune
	glob string
	// expr is the wildcard as a regular expression; class is that of the
	// characters that it matches one of.
	expr, class string
}

func (u unit) isSlash() bool   { return u.glob == "" && u.lit == '/' }
func (u unit) isLiteral() bool { return u.glob == "" }
func (u unit) isSuper() bool   { return u.glob == "**" }
func (u unit) isStar() bool    { return u.glob == "*" || u.glob == "**" }

// escaped marks the unit of an escape: the unit of %2F is escaped | 0x2F.
const escaped = 0x200000

func literalUnits(s string) []unit {
	units := make([]unit, 0, len(s))
	for _, r := range s {
		units = append(units, unit{lit: r})
	}
	return units
}

func wildcard(s string) unit {
	switch s {
	case "*":
		return unit{glob: s, expr: "[^/]*"}
	case "**":
		return unit{glob: s, expr: "(?s:.*)"}
	}
	return oneOf(s, "[^/]")
}

// oneOf returns the unit that matches one character of class, as which an escape
// counts.
func oneOf(s, class string) unit {
	expr := class
	if strings.HasPrefix(class, "[^") {
		expr = "(?:%[0-9A-F]{2}|" + class + ")"
	}
	return unit{glob: s, expr: expr, class: class}
}

// coalesce returns units with every run of * and ** as one of them. Without it
// two alternatives that meet, as in {*,a}*, would be written as **.
func coalesce(units []unit) []unit {
	var merged []unit
	for _, u := range units {
		if n := len(merged); n > 0 && u.isStar() && merged[n-1].isStar() {
			if u.isSuper() {
				merged[n-1] = u
			}
			continue
		}
		merged = append(merged, u)
	}
	return merged
}

func countStars(units []unit) int {
	n := 0
	for _, u := range units {
		if u.isStar() {
			n++
		}
	}
	return n
}

// render writes units as a pattern without alternatives.
func render(units []unit) string {
	var b strings.Builder
	for _, u := range units {
		switch {
		case !u.isLiteral():
			b.WriteString(u.glob)
		case u.lit < utf8.RuneSelf && syntax.IsSpecial(byte(u.lit)):
			b.WriteByte('\\')
			b.WriteRune(u.lit)
		default:
			u.write(&b)
		}
	}
	return b.String()
}

// literalPrefix returns the literal that units start with, and how many of them
// that is.
func literalPrefix(units []unit) (string, int) {
	for i, u := range units {
		if !u.isLiteral() {
			return literalText(units[:i]), i
		}
	}
	return literalText(units), len(units)
}

// literalText returns units, all of them literal, as a string.
func literalText(units []unit) string {
	var b strings.Builder
	for _, u := range units {
		u.write(&b)
	}
	return b.String()
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
		if countStars(alternatives[i]) > maxStars {
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
	case countWildcards(pattern) > maxWildcards:
		return "has more than 128 wildcards, classes and groups"
	}
	escaped := false
	for _, r := range pattern {
		switch {
		case unicode.IsControl(r):
			return "has a control character, which no resource has"
		case escaped && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			return `has a \ before a letter or digit: \ escapes the next character; write / between path segments`
		}
		escaped = r == '\\' && !escaped
	}
	return ""
}

// countWildcards returns how many wildcards, classes and groups a pattern has at
// most: a run of * is one.
func countWildcards(pattern string) int {
	n := 0
	var prev rune
	for _, r := range pattern {
		if strings.ContainsRune("?[{", r) || r == '*' && prev != '*' {
			n++
		}
		prev = r
	}
	return n
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
	if depth > maxNestedAlternatives {
		p.fail("nests more than 8 groups of alternatives")
		return nil
	}
	var done [][]unit
	current := [][]unit{nil}
	for p.problem == "" {
		start := p.lex.Offset()
		switch token := p.lex.Next(); token.Type {
		case syntax.EOF, syntax.TermsClose:
			return append(done, current...)
		case syntax.TermSeparator:
			done = append(done, current...)
			current = [][]unit{nil}
		case syntax.TermsOpen:
			current = p.product(current, p.sequence(depth+1))
		case syntax.RangeOpen:
			current = p.product(current, [][]unit{{p.class(start)}})
		case syntax.Text:
			current = p.product(current, [][]unit{literalUnits(token.Data)})
		case syntax.Any, syntax.Super, syntax.Single:
			current = p.product(current, [][]unit{{wildcard(token.Data)}})
		default:
			p.fail("is not understood")
		}
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
			all = append(all, append(head[:len(head):len(head)], tail...))
			p.copied += len(head) + len(tail)
		}
		if p.copied > maxCopied {
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
			b.WriteByte(']')
			return oneOf(source, b.String())
		case syntax.Not:
			b.WriteByte('^')
		case syntax.RangeBetween:
			b.WriteByte('-')
		case syntax.RangeLo, syntax.RangeHi, syntax.Text:
			for _, r := range token.Data {
				writeClassRune(&b, r)
			}
		default:
			p.fail("has a class that is not understood")
			return unit{}
		}
	}
}

// writeClassRune writes r so that it means itself within a class.
func writeClassRune(b *strings.Builder, r rune) {
	if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		b.WriteByte('\\')
	}
	b.WriteRune(r)
}

func (p *patternParser) fail(problem string) {
	if p.problem == "" {
		p.problem = problem
	}
}
