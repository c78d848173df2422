package glob

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gobwas/glob/syntax"

	"writ.example/writ/engine/resource"
)

// Expression is a list, as some readers read it, in one regular expression (RE2) without anchors.
type Expression struct {
	Readers resource.Reader
	Text    string
	// Stopped has an expression for each [resource.Stops] except the first. It is empty if all
	// these expressions equal Text.
	Stopped map[resource.Stops]string
}

// Expressions returns the expressions of a list of patterns, one for each group of readers. All
// patterns must compile.
func Expressions(patterns []string, side resource.Side) []Expression {
	return expressions(patterns, side, spellingsOf)
}

// ExactExpressions returns the expressions of resources that [Exactly] compiles.
func ExactExpressions(resources []string, side resource.Side) []Expression {
	return expressions(resources, side, quoted)
}

func expressions(patterns []string, side resource.Side, spell speller) []Expression {
	var order []resource.Reader
	forms := make(map[resource.Reader][][]unit)
	for _, pattern := range patterns {
		spellings, _ := spell(nil, pattern, side, maxSpelled)
		for _, s := range spellings {
			if forms[s.readers] == nil {
				order = append(order, s.readers)
			}
			forms[s.readers] = append(forms[s.readers], s.all())
		}
	}
	all := make([]Expression, len(order))
	for i, readers := range order {
		all[i] = Expression{Readers: readers, Text: union(forms[readers], "[^/]*")}
		list, at := union(forms[readers], `(?:%(?:[0-24-9A-F][0-9A-F]|3[0-9A-E])|[^/,;?&%\s\p{Z}])*`),
			union(forms[readers], starOfAddresses)
		if list != all[i].Text {
			all[i].Stopped = map[resource.Stops]string{resource.StopsInList: list, resource.StopsAtAt: at}
		}
	}
	return all
}

func union(forms [][]unit, star string) string {
	var all []string
	seen := make(map[string]bool)
	for _, form := range forms {
		if expr := expression(form, star); !seen[expr] {
			seen[expr] = true
			all = append(all, expr)
		}
	}
	return strings.Join(all, "|")
}

func expression(units []unit, star string) string {
	var b strings.Builder
	for _, u := range units {
		switch {
		case u.isLiteral():
			b.WriteString(regexp.QuoteMeta(string(appendLiteral(nil, []unit{u}))))
		case u.star == superStar:
			b.WriteString("(?s:.*)")
		case u.star == oneStar:
			b.WriteString(star)
		case strings.HasPrefix(u.class.expr, "[^"): // one character, and an escape is one character
			b.WriteString("(?:%[0-9A-F]{2}|" + u.class.expr + ")")
		default:
			b.WriteString(u.class.expr)
		}
	}
	return b.String()
}

// PlainExpressions returns the alternatives of a pattern of [CompileSet], each as an expression
// without anchors. The pattern must compile.
func PlainExpressions(pattern string) []string { return plainExpressions(pattern, "[^/]*") }

// starOfAddresses is the expression of a * that ends at an @ too.
const starOfAddresses = "[^/@]*"

func plainExpressions(pattern, star string) []string {
	alternatives, _ := parsePattern(pattern)
	var all []string
	for _, units := range alternatives {
		all = append(all, expression(units, star))
	}
	return all
}

// HasMeta reports whether a pattern has a wildcard, a group or an escape.
func HasMeta(pattern string) bool { return strings.ContainsAny(pattern, `*?[]{}\`) }

// IsSimple reports whether OPA itself can match a pattern fast and correctly. OPA's glob library
// must not have to search for the ends of wildcards. The pattern must have no escape: OPA's index
// of rules reads an escape as two characters.
func IsSimple(pattern string) bool {
	if strings.Contains(pattern, `\`) {
		return false
	}
	alternatives, _ := parsePattern(pattern)
	for _, units := range alternatives {
		if backtracks(units) || slices.ContainsFunc(units, unit.needsEscape) {
			return false
		}
	}
	return true
}

// Affix is a pattern that is a literal with one star before or after it.
type Affix struct {
	// Literal is not empty. A text matches only if it begins with Literal, or ends with it if Leading
	// is set.
	Literal string
	Leading bool // the star is before the literal
	// Crosses says that the star matches slashes, too. Then Literal alone decides.
	Crosses bool
}

// AffixOf returns a pattern of [CompileSet] as an Affix. ok is false if the pattern has another form.
func AffixOf(pattern string) (a Affix, ok bool) {
	alternatives, _ := parsePattern(pattern)
	if len(alternatives) != 1 || len(alternatives[0]) < 2 {
		return a, false
	}
	units := alternatives[0]
	end := units[len(units)-1]
	if units[0].star != noStar {
		a.Leading, end, units = true, units[0], units[1:]
	} else {
		units = units[:len(units)-1]
	}
	var n int
	a.Literal, n = literalPrefix(units)
	a.Crosses = end.star == superStar
	return a, end.star != noStar && n == len(units)
}

// ActionAffixOf is [AffixOf] for a pattern of [CompileActions].
func ActionAffixOf(pattern string) (a Affix, ok bool) {
	a = Affix{Literal: strings.Trim(pattern, "*"), Leading: strings.HasPrefix(pattern, "*"), Crosses: true}
	return a, a.Literal != "" && !strings.Contains(a.Literal, "*") && a.Leading != strings.HasSuffix(pattern, "*")
}

// needsEscape reports whether a pattern must have a backslash before u.
func (u unit) needsEscape() bool {
	return u.isLiteral() && u.lit < utf8.RuneSelf && syntax.IsSpecial(byte(u.lit))
}

// backtracks reports whether two or more wildcards of units can end in several places. A wildcard
// has only one possible end if only literals follow. The same holds if it ends at a slash and a
// slash is the next literal.
func backtracks(units []unit) bool {
	choices := 0
	for i, u := range units {
		_, n := literalPrefix(units[i+1:])
		if u.star != noStar && n < len(units)-i-1 && (u.star == superStar || units[i+1].lit != '/') {
			choices++
		}
	}
	return choices > 1
}

// Join returns an expression that matches if any of exprs matches.
func Join(exprs []Expression) string {
	texts := make([]string, len(exprs))
	for i, e := range exprs {
		texts[i] = e.Text
	}
	return strings.Join(texts, "|")
}
