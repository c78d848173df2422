package glob

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"writ.example/writ/engine/resource"
)

// addressBrackets matches a pattern up to an address in brackets.
var addressBrackets = regexp.MustCompile(`^(.*?//)\[([^\]]*)\]`)

// spelling is one alternative of a pattern, as some readers read that alternative. It has either its units, or a
// text of literals without escapes. If the text is not exact, its stars and question marks are wildcards.
type spelling struct {
	readers resource.Reader
	exact   bool
	text    string
	units   []unit
}

func (s *spelling) all() []unit {
	switch {
	case s.text == "":
		return s.units
	case s.exact:
		return units(s.text, nil)
	}
	return starred(s.text)
}

// len returns the number of units.
func (s *spelling) len() int {
	n := len(s.units) + utf8.RuneCountInString(s.text)
	for i := 1; i < len(s.text) && !s.exact; i++ {
		if s.text[i] == '*' && s.text[i-1] == '*' { // a run of stars is one unit
			n--
		}
	}
	return n
}

// speller appends the spellings of a list's entry to all, or returns the entry's problem. The spellings together
// have up to limit characters.
type speller func(all []spelling, text string, side resource.Side, limit int) ([]spelling, string)

// plain appends the spellings of a pattern that is matched as written.
func plain(all []spelling, pattern string, _ resource.Side, _ int) ([]spelling, string) {
	if problem := checkPattern(pattern); problem != "" {
		return nil, problem
	}
	if texts, ok := choices(pattern); ok {
		for _, text := range texts {
			all = append(all, spelling{readers: resource.All, text: text})
		}
		return all, ""
	}
	alternatives, problem := expand(pattern)
	for _, units := range alternatives {
		all = append(all, spelling{readers: resource.All, units: units})
	}
	return all, problem
}

// spellingsOf appends all spellings of a pattern, or returns the pattern's problem. The spellings together
// have up to limit characters.
func spellingsOf(all []spelling, pattern string, side resource.Side, limit int) ([]spelling, string) {
	// A pattern this short cannot have too many wildcards.
	if len(pattern) <= maxWildcards && strings.IndexByte(pattern, '?') < 0 && resource.IsPlainPattern(pattern, side) {
		return append(all, spelling{readers: resource.All, text: pattern}), ""
	}
	// Backslashes of a Windows pattern and brackets around an address are ordinary characters.
	written := resource.Separators(pattern)
	if strings.Contains(written, "//[") {
		written = addressBrackets.ReplaceAllString(written, `$1\[$2\]`)
	}
	alternatives, problem := plain(nil, written, side, limit)
	if problem != "" {
		return nil, problem
	}
	first := len(all)
	for _, s := range alternatives {
		if limit -= s.len(); limit < 0 {
			return nil, tooMuchText
		}
		if all, problem = read(all, s, side); problem != "" {
			return nil, problem
		}
		if len(all)-first > maxSpellings {
			return nil, "stands for more than 256 alternatives"
		}
	}
	if strings.ContainsAny(pattern, `?[]{}\`) {
		// A text that is no resource has none.
		if spellings, problem := quoted(all, pattern, side, limit); problem == "" {
			return spellings, ""
		}
	}
	return all, ""
}

// quoted appends the spellings of a text in which no character is a wildcard.
func quoted(all []spelling, text string, side resource.Side, _ int) ([]spelling, string) {
	readings, err := resource.ReadQuoted(text, side)
	return spell(all, readings, err, nil, side)
}

// read appends the spellings of one alternative of a pattern, as each reader reads it.
func read(all []spelling, alternative spelling, side resource.Side) ([]spelling, string) {
	if alternative.text != "" && resource.IsPlainPattern(alternative.text, side) {
		return append(all, alternative), ""
	}
	units := alternative.all()
	text, wildcards, ok := lettered(units)
	if !ok {
		return nil, "has a private use character that stands for a wildcard here"
	}
	if !strings.ContainsAny(text, "*?") && resource.IsPlainPattern(text, side) { // these are letters here
		return append(all, spelling{readers: resource.All, units: units}), ""
	}
	if climbs(text) {
		return nil, "has a segment .., which no reading of a resource keeps: write the path that it leads to"
	}
	readings, err := resource.ReadPattern(text, side)
	return spell(all, readings, err, wildcards, side)
}

// spell appends the readings of a pattern as spellings. If err is not nil, it returns the text of
// err as the problem.
func spell(
	all []spelling, readings []resource.Reading, err error, wildcards []unit, side resource.Side,
) ([]spelling, string) {
	if err != nil {
		return nil, "never matches: " + strings.TrimPrefix(err.Error(), "resource: ")
	}
	for _, r := range readings {
		if len(wildcards) == 0 && strings.IndexByte(r.Text, '%') < 0 {
			all = append(all, spelling{readers: widened(r, side), exact: true, text: r.Text})
			continue
		}
		all = append(all, spelling{readers: widened(r, side), units: coalesce(units(r.Text, wildcards))})
	}
	return all, ""
}

// widened returns the readers of r and further readers for which the result is the same. Lists then
// have fewer groups. If all readers of URLs agree on a URL, it adds all other readers, because
// those read no URL. For an allowance it adds Raw, because only a block looks at the raw text.
func widened(r resource.Reading, side resource.Side) resource.Reader {
	const urls = resource.Client | resource.Browser | resource.Server | resource.Literal
	if r.Readers&urls == urls && strings.Contains(r.Text, "://") {
		return resource.All
	}
	if side == resource.ForAllow {
		return r.Readers | resource.Raw
	}
	return r.Readers
}

// lettered returns units as a text in which a letter stands for each wildcard, and the wildcards.
// ok is false if units already has such a letter.
func lettered(units []unit) (text string, wildcards []unit, ok bool) {
	var b strings.Builder
	b.Grow(len(units))
	for _, u := range units {
		letter := u.lit
		switch {
		case u.isLiteral() && resource.IsWild(u.lit):
			return "", nil, false
		case u.star == superStar:
			letter = resource.Super + rune(len(wildcards))
		case !u.isLiteral():
			letter = resource.Wild + rune(len(wildcards))
		}
		if b.WriteRune(letter); !u.isLiteral() {
			wildcards = append(wildcards, u)
		}
	}
	return b.String(), wildcards, true
}

// units returns the units of text, which is in canonical form. Each letter that stands for a
// wildcard becomes that wildcard again.
func units(text string, wildcards []unit) []unit {
	all := make([]unit, 0, len(text))
	for text != "" {
		r, size := next(text)
		text = text[size:]
		if i := int(r-resource.Wild) % (resource.Super - resource.Wild); r >= resource.Wild && i < len(wildcards) {
			all = append(all, wildcards[i])
		} else {
			all = append(all, unit{lit: r})
		}
	}
	return all
}

// plainDots replaces backslashes by slashes and escaped dots by dots.
var plainDots = strings.NewReplacer(`\`, "/", "%2e", ".", "%2E", ".")

// climbs reports whether text has a segment "..". At the start of a relative path such a segment
// does not count.
func climbs(text string) bool {
	if !strings.Contains(text, "..") && !strings.Contains(text, "%") {
		return false
	}
	text = plainDots.Replace(text) + "/"
	for strings.HasPrefix(text, "../") {
		text = text[len("../"):]
	}
	return strings.Contains("/"+text, "/../")
}
