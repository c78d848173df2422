package glob

import (
	"fmt"
	"regexp"
	classes "regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gobwas/glob"
	"github.com/gobwas/glob/syntax"
)

// unit is one part of a pattern. It is a class if class is not nil, otherwise a star or a literal
// character.
type unit struct {
	lit   rune
	star  star
	class *class
}

// star is a wildcard for any number of characters: * or **.
type star uint8

const (
	noStar star = iota
	oneStar
	superStar
)

// class is a set of characters. expr is the set's regular expression. bounds has the first and the
// last character of each range of the set, sorted.
type class struct {
	expr   string
	bounds []rune
}

func (u unit) isLiteral() bool { return u.star == noStar && u.class == nil }

// escaped marks an escape. For example, the unit of %2F is escaped | 0x2F.
const escaped = 0x200000

// anyOne is the unit of ?.
var anyOne = oneOf("[^/]")

// oneOf returns the unit that matches one character of expr, a class in the syntax of regular
// expressions. A class with every character beyond ASCII also matches escapes.
func oneOf(expr string) unit {
	re, err := classes.Parse(expr, classes.Perl)
	if err != nil {
		return unit{class: &class{expr: expr}}
	}
	bounds := re.Rune
	if re.Op == classes.OpLiteral {
		bounds = []rune{bounds[0], bounds[0]}
		// The parser turns a class of both cases of a letter, such as [aA], into one literal that
		// ignores case.
		for r := unicode.SimpleFold(bounds[0]); re.Flags&classes.FoldCase != 0 &&
			r != bounds[0]; r = unicode.SimpleFold(r) {
			bounds = append(bounds, r, r) // the upper case letter is the least of the class
		}
	}
	if n := len(bounds); n > 0 && bounds[n-2] <= utf8.RuneSelf && bounds[n-1] == utf8.MaxRune {
		bounds[n-1] = escaped | 0xFF
	}
	return unit{class: &class{expr, bounds}}
}

// ranges yields the first and the last character of each range of u. A star has no ranges.
func (u unit) ranges(yield func(lo, hi rune) bool) {
	if u.isLiteral() {
		yield(u.lit, u.lit)
	}
	for i := 0; u.class != nil && i < len(u.class.bounds) && yield(u.class.bounds[i], u.class.bounds[i+1]); i += 2 {
	}
}

// coalesce replaces each run of * and ** by one star. Otherwise two stars that meet, as in {*,a}*,
// would be written as **.
func coalesce(units []unit) []unit {
	apart := true
	for i := 1; i < len(units) && apart; i++ {
		apart = units[i-1].star == noStar || units[i].star == noStar
	}
	if apart {
		return units
	}
	var merged []unit
	for _, u := range units {
		if n := len(merged); n > 0 && u.star != noStar && merged[n-1].star != noStar {
			merged[n-1].star = max(merged[n-1].star, u.star)
		} else {
			merged = append(merged, u)
		}
	}
	return merged
}

// literals returns how many literal characters units begin with.
func literals(units []unit) int {
	n := slices.IndexFunc(units, func(u unit) bool { return !u.isLiteral() })
	if n < 0 {
		return len(units)
	}
	return n
}

// literalPrefix returns the literal at the start of units, and how many units it takes.
func literalPrefix(units []unit) (string, int) {
	n := literals(units)
	return string(appendLiteral(make([]byte, 0, n), units[:n])), n
}

// appendLiteral appends units, which are literal characters.
func appendLiteral(b []byte, units []unit) []byte {
	for _, u := range units {
		if u.lit >= escaped {
			b = fmt.Appendf(b, "%%%02X", u.lit-escaped)
		} else {
			b = utf8.AppendRune(b, u.lit)
		}
	}
	return b
}

// parsePattern expands the braces of pattern and returns the alternatives. If pattern is invalid,
// it returns the problem.
func parsePattern(pattern string) ([][]unit, string) {
	spellings, problem := plain(nil, pattern, 0, 0)
	if problem != "" {
		return nil, problem
	}
	alternatives := make([][]unit, len(spellings))
	for i := range spellings {
		alternatives[i] = spellings[i].all()
	}
	return alternatives, ""
}

// maxChoices is the greatest number of alternatives that choices returns.
const maxChoices = 16

// choices returns the alternatives of a pattern without braces, or with groups that no star meets and that have no
// group in them. It reports false for any other pattern, and for one with many alternatives.
func choices(pattern string) (texts []string, ok bool) {
	if strings.ContainsAny(pattern, "[]\\\uFFFD") {
		return nil, false
	}
	if !strings.ContainsAny(pattern, "{}") {
		return []string{pattern}, true
	}
	texts = []string{""}
	for rest := pattern; ; {
		before, after, opens := strings.Cut(rest, "{")
		if strings.IndexByte(before, '}') >= 0 {
			return nil, false
		}
		for i := range texts {
			texts[i] += before
		}
		if !opens {
			return texts, true
		}
		group, next, closes := strings.Cut(after, "}")
		options := strings.Split(group, ",")
		if !closes || strings.IndexByte(group, '{') >= 0 || len(options) < 2 || len(options)*len(texts) > maxChoices ||
			strings.HasSuffix(before, "*") || strings.HasPrefix(next, "*") {
			return nil, false
		}
		heads := texts
		texts = make([]string, 0, len(heads)*len(options))
		for _, head := range heads {
			for _, option := range options {
				if option == "" || option[0] == '*' || option[len(option)-1] == '*' {
					return nil, false
				}
				texts = append(texts, head+option)
			}
		}
		rest = next
	}
}

// expand is parsePattern for a pattern that checkPattern accepts.
func expand(pattern string) ([][]unit, string) {
	if _, err := glob.Compile(pattern, '/'); err != nil {
		return nil, strings.TrimPrefix(err.Error(), "glob: ")
	}
	p := patternParser{source: pattern, lex: syntax.NewLexer(pattern)}
	alternatives := p.sequence()
	for i, units := range alternatives {
		alternatives[i] = coalesce(units)
	}
	return alternatives, p.problem
}

// starred returns the units of a pattern that has no other special characters than stars and question marks.
// expand gives the same result, in ten times as long.
func starred(pattern string) []unit {
	units := make([]unit, 0, len(pattern))
	star := false // the last character is a star that a second one makes **
	for _, r := range pattern {
		switch {
		case r == '*' && star:
			units[len(units)-1].star, star = superStar, false
			continue
		case r == '*':
			units = append(units, unit{star: oneStar})
		case r == '?':
			units = append(units, anyOne)
		default:
			units = append(units, unit{lit: r})
		}
		star = r == '*'
	}
	return coalesce(units)
}

// checkPattern refuses some patterns that the glob library accepts, because the library gives them
// a meaning that most authors do not expect.
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
		case r == '?' || r == '[' || r == '{' || r == '*' && prev != '*':
			wildcards++
		}
		escaped, prev = r == '\\' && !escaped, r
	}
	if wildcards > maxWildcards {
		return "has more than 128 wildcards, classes and groups"
	}
	return ""
}

// patternParser expands a pattern. The glob library must have accepted the pattern.
type patternParser struct {
	source  string
	lex     *syntax.Lexer
	problem string
	copied  int // how many characters were copied for alternatives so far
}

// sequence parses up to the end of the pattern or of a group, and returns the alternatives.
func (p *patternParser) sequence() [][]unit {
	var done [][]unit
	current := [][]unit{nil}
	for p.problem == "" {
		start, next := p.lex.Offset(), [][]unit{nil}
		switch token := p.lex.Next(); token.Type {
		case syntax.EOF, syntax.TermsClose:
			return append(done, current...)
		case syntax.TermSeparator:
			done, current = append(done, current...), next
			continue
		case syntax.TermsOpen:
			next = p.sequence()
		case syntax.RangeOpen:
			next[0] = []unit{p.class(start)}
		case syntax.Text:
			for _, r := range token.Data {
				next[0] = append(next[0], unit{lit: r})
			}
		case syntax.Any:
			next[0] = []unit{{star: oneStar}}
		case syntax.Super:
			next[0] = []unit{{star: superStar}}
		case syntax.Single:
			next[0] = []unit{anyOne}
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
		return [][]unit{append(heads[0], tails[0]...)} // no other tail needs this head, so append may use its memory
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

// class parses a character class after its opening bracket.
func (p *patternParser) class(start int) unit {
	if strings.HasPrefix(p.source[start:], "[^") {
		p.fail("has a class that starts with ^, which does not negate: write [!…]")
	}
	expr := "["
	token := p.lex.Next()
	for ; token.Type != syntax.RangeClose && token.Type != syntax.EOF &&
		token.Type != syntax.Error; token = p.lex.Next() {
		switch token.Type {
		case syntax.Not:
			expr += "^"
		case syntax.RangeBetween:
			expr += "-"
		default:
			expr += notWord.ReplaceAllString(token.Data, `\$0`) // the backslash makes the character literal
		}
	}
	u := oneOf(expr + "]")
	if token.Type != syntax.RangeClose || len(u.class.bounds) == 0 {
		p.fail("has a class that is not understood")
	}
	return u
}

// notWord matches an ASCII character that is neither a letter nor a digit.
var notWord = regexp.MustCompile(`[^0-9A-Za-z\x{80}-\x{10FFFF}]`)

func (p *patternParser) fail(problem string) {
	if p.problem == "" {
		p.problem = problem
	}
}
