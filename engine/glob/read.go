package glob

import (
	"regexp"
	"strings"

	"writ.example/writ/engine/resource"
)

// addressBrackets matches a pattern up to an address in brackets.
var addressBrackets = regexp.MustCompile(`^(.*?//)\[([^\]]*)\]`)

// spelling is one alternative of a pattern, as some readers read that alternative.
type spelling struct {
	readers resource.Reader
	units   []unit
}

// speller returns the spellings of a list's entry, or the entry's problem. The spellings together
// have up to limit characters.
type speller func(text string, side resource.Side, limit int) ([]spelling, string)

// plain returns the spellings of a pattern that is matched as written.
func plain(pattern string, _ resource.Side, _ int) ([]spelling, string) {
	alternatives, problem := parsePattern(pattern)
	var all []spelling
	for _, units := range alternatives {
		all = append(all, spelling{resource.All, units})
	}
	return all, problem
}

// spellingsOf returns all spellings of a pattern, or the pattern's problem. The spellings together
// have up to limit characters.
func spellingsOf(pattern string, side resource.Side, limit int) ([]spelling, string) {
	// Backslashes of a Windows pattern and brackets around an address are ordinary characters.
	written := resource.Separators(pattern)
	if strings.Contains(written, "//[") {
		written = addressBrackets.ReplaceAllString(written, `$1\[$2\]`)
	}
	alternatives, problem := parsePattern(written)
	if problem != "" {
		return nil, problem
	}
	var all []spelling
	for _, units := range alternatives {
		if limit -= len(units); limit < 0 {
			return nil, tooMuchText
		}
		spellings, problem := read(units, side)
		if problem != "" {
			return nil, problem
		}
		if all = append(all, spellings...); len(all) > maxSpellings {
			return nil, "stands for more than 256 alternatives"
		}
	}
	if strings.ContainsAny(pattern, `?[]{}\`) {
		spellings, _ := quoted(pattern, side, limit) // a text that is no resource has none
		all = append(all, spellings...)
	}
	return all, ""
}

// quoted returns the spellings of a text in which no character is a wildcard.
func quoted(text string, side resource.Side, _ int) ([]spelling, string) {
	readings, err := resource.ReadQuoted(text, side)
	return spell(readings, err, nil, side)
}

// read returns the spellings of one alternative of a pattern, as each reader reads it.
func read(alternative []unit, side resource.Side) ([]spelling, string) {
	text, wildcards, ok := lettered(alternative)
	if !ok {
		return nil, "has a private use character that stands for a wildcard here"
	}
	if resource.IsPlainPattern(text, side) {
		return []spelling{{resource.All, alternative}}, ""
	}
	if climbs(text) {
		return nil, "has a segment .., which no reading of a resource keeps: write the path that it leads to"
	}
	readings, err := resource.ReadPattern(text, side)
	return spell(readings, err, wildcards, side)
}

// spell returns the readings of a pattern as spellings. If err is not nil, it returns the text of
// err as the problem.
func spell(readings []resource.Reading, err error, wildcards []unit, side resource.Side) ([]spelling, string) {
	if err != nil {
		return nil, "never matches: " + strings.TrimPrefix(err.Error(), "resource: ")
	}
	all := make([]spelling, len(readings))
	for i, r := range readings {
		all[i] = spelling{widened(r, side), coalesce(units(r.Text, wildcards))}
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
