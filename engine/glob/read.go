package glob

import (
	"regexp"
	"strings"

	"writ/engine/resource"
)

// addressBrackets are the brackets that hold an address.
var addressBrackets = regexp.MustCompile(`^(.*?//)\[([^\]]*)\]`)

// spelling is one alternative of a pattern as some readers read it.
type spelling struct {
	readers resource.Reader
	units   []unit
}

// speller returns the spellings of an entry of a list, with at most limit characters, or its
// problem.
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

// spellingsOf returns all spellings of a pattern, with at most limit characters, or its
// problem.
func spellingsOf(pattern string, side resource.Side, limit int) ([]spelling, string) {
	// The backslashes of a pattern for Windows and the brackets around an address are letters.
	alternatives, problem := parsePattern(addressBrackets.ReplaceAllString(resource.Separators(pattern), `$1\[$2\]`))
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
		spellings, _ := quoted(pattern, side, limit) // what no reader can read quotes no resource
		all = append(all, spellings...)
	}
	return all, ""
}

// quoted returns the spellings of a text that stands for itself.
func quoted(text string, side resource.Side, _ int) ([]spelling, string) {
	readings, err := resource.ReadQuoted(text, side)
	return spell(readings, err, nil, side)
}

// read returns an alternative of a pattern as each reader reads it.
func read(alternative []unit, side resource.Side) ([]spelling, string) {
	text, wildcards, ok := lettered(alternative)
	if !ok {
		return nil, "has a private use character that stands for a wildcard here"
	}
	if climbs(text) {
		return nil, "has a segment .., which no reading of a resource keeps: write the path that it leads to"
	}
	readings, err := resource.ReadPattern(text, side)
	return spell(readings, err, wildcards, side)
}

// spell returns readings of a pattern as units. The problem is err, if there is one.
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

// widened returns the readers of r and those for which it makes no difference, so that lists
// have fewer groups. Where all readers of URLs agree on a URL, it adds all others, which read
// no URL. For a list that allows it adds Raw, which only a block looks at.
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

// lettered returns units as a text with a letter for each wildcard, and the
// wildcards.
func lettered(units []unit) (text string, wildcards []unit, ok bool) {
	var b strings.Builder
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

// units returns text in canonical form as units.
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

// plainDots writes a path with slashes and with dots that are no escapes.
var plainDots = strings.NewReplacer(`\`, "/", "%2e", ".", "%2E", ".")

// climbs reports whether text has a segment .. behind the start of a relative path.
func climbs(text string) bool {
	text = plainDots.Replace(text) + "/"
	for strings.HasPrefix(text, "../") {
		text = text[len("../"):]
	}
	return strings.Contains("/"+text, "/../")
}
