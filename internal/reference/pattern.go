package reference

import (
	"errors"
	"fmt"
	"slices"
	"unicode"
)

// A Pattern is a glob as each reader reads it.
type Pattern struct {
	raw          string
	tokens       []token
	alternatives []text
	readings     map[string][]text // for each reader: all alternatives, and the whole text
}

// ReadPattern reads a pattern. An error means that the pattern is refused (400).
func ReadPattern(pattern string) (*Pattern, error) {
	if err := refused(pattern); err != nil {
		return nil, err
	}
	alternatives, tokens, err := parseGlob(pattern)
	if err != nil {
		return nil, err
	}
	p := &Pattern{raw: pattern, tokens: tokens, alternatives: alternatives, readings: map[string][]text{}}
	for _, a := range alternatives {
		if err := upwards(a); err != nil {
			return nil, err
		}
		readings, err := readAlternative(a)
		if err != nil {
			return nil, fmt.Errorf("no reader can read %q: %w", pattern, err)
		}
		p.add(readings)
	}
	if whole, err := read(text(pattern)); err == nil {
		p.add(whole)
	}
	return p, nil
}

func (p *Pattern) add(readings []reading) {
	for _, r := range readings {
		p.readings[r.by] = addText(p.readings[r.by], r.full())
	}
}

// upwards returns an error for a segment "..", except at the start of a relative path.
func upwards(a text) error {
	f := formOf(a)
	path := a
	if f == webForm || f == serviceForm || f == fileForm {
		path, _ = cutQuery(a)
	}
	leading := f == nameForm
	for _, s := range splitText(forward(path), '/') {
		d := literalDots(s)
		if f != nameForm && f != windowsForm {
			d = escapedDots(s)
		}
		if d == 2 && !leading {
			return errors.New("a segment .. is no pattern: write the path that it leads to")
		}
		leading = leading && d == 2
	}
	return nil
}

// readAlternative returns the readings of one alternative of a pattern. For a name, it returns the
// readings of all readers: the name may begin with a wildcard that stands for a scheme.
func readAlternative(a text) ([]reading, error) {
	var out []reading
	switch formOf(a) {
	case nameForm:
		out = readName(a)
		out = append(out, reading{by: Windows, path: letters(windows(a))})
		out = append(out, serveName(a)...)
		for _, by := range []string{Client, Browser, Server, Literal, Addresses} {
			out = append(out, reading{by: by, path: canon(a)})
		}
		out = append(out, reading{by: Server, path: letters(decodeOnce(a))})
		return out, nil
	case webForm, serviceForm:
		return readURLPattern(a)
	default:
		return read(a)
	}
}

// readURLPattern returns the readings of a pattern for a web or service URL. The scheme may have
// wildcards. The first ? may stand for the beginning of a query.
func readURLPattern(a text) ([]reading, error) {
	before, query := a, text(nil)
	if i := pathStart(a); i < len(a) {
		if q := slices.IndexFunc(a[i:], func(r rune) bool { return isWild(r) && r&anyOne != 0 }); q >= 0 {
			before, query = a[:i+q], a[i+q:]
		}
	}
	out, err := read(a)
	if err != nil && query == nil {
		return nil, err
	}
	more, err := readSchemes(before)
	if err != nil && len(out) == 0 {
		return nil, err
	}
	if query != nil {
		if i := slices.Index(query, '#'); i >= 0 {
			query = query[:i]
		}
		for i := range more {
			more[i].query = concat(query[:1], canon(query[1:]))
		}
	}
	return append(out, more...), nil
}

// readSchemes returns the readings of a URL with wildcards in its scheme. They include the readings
// as a web URL.
func readSchemes(a text) ([]reading, error) {
	out, err := read(a)
	if scheme, ok := schemeOf(a); ok && slices.ContainsFunc(scheme, isWild) {
		if p, webErr := parseWeb(a); webErr == nil {
			out = append(out, urlReadings([]parts{p}, true)...)
		}
	}
	return out, err
}

// pathStart returns the index of the first slash after the authority.
func pathStart(a text) int {
	colon := slices.Index(a, ':')
	for i := colon; i+2 < len(a); i++ {
		if hasPrefix(a[i:], "://") {
			if s := slices.Index(a[i+3:], '/'); s >= 0 {
				return i + 3 + s
			}
			break
		}
	}
	return len(a)
}

// matches reports whether the pattern matches a reading. It compares the reading with the pattern
// as the same reader reads it. mailto: makes no difference.
func (p *Pattern) matches(r reading, block bool, stop func(rune) bool) bool {
	t := r.full()
	if p.matchesText(r.by, t, block, stop) {
		return true
	}
	if r.by != Addresses || hasPrefix(t, "sms:") || hasPrefix(t, "tel:") {
		return false
	}
	if hasPrefix(t, "mailto:") {
		return p.matchesText(r.by, t[len("mailto:"):], block, stop)
	}
	return p.matchesText(r.by, concat(text("mailto:"), t), block, stop)
}

func (p *Pattern) matchesText(by string, t text, block bool, stop func(rune) bool) bool {
	folds := block && (by == Windows || by == Addresses)
	for _, pattern := range p.readings[by] {
		if match(pattern, p.tokens, t, matching{stop: stop}) {
			return true
		}
		if block && (match(nfkc(pattern), p.tokens, t, matching{}) || match(foldScheme(pattern), p.tokens, t, matching{})) {
			return true
		}
		if folds && match(fold(nfkc(pattern)), p.tokens, fold(t), matching{fold: true}) {
			return true
		}
	}
	return false
}

func (p *Pattern) matchesRaw(raw string) bool {
	return raw == p.raw || slices.ContainsFunc(p.alternatives, func(a text) bool {
		return match(a, p.tokens, text(raw), matching{})
	})
}

// Allowed reports whether each reading for an allowance matches some pattern.
func Allowed(patterns []*Pattern, r *Resource) bool {
	_, ok := Outside(patterns, r)
	return !ok
}

// Outside returns the reader of a reading that none of the patterns matches. ok is false if there
// is no such reading.
func Outside(patterns []*Pattern, r *Resource) (reader string, ok bool) {
	for _, rd := range r.allow {
		if !slices.ContainsFunc(patterns, func(p *Pattern) bool { return p.matches(rd, false, r.stop(rd)) }) {
			return rd.by, true
		}
	}
	return "", false
}

// stop returns the function that says at which characters a * of an allowance ends.
func (r *Resource) stop(rd reading) func(rune) bool {
	switch {
	case rd.by == Addresses:
		return func(c rune) bool { return c == '@' }
	case r.lonely:
		return func(c rune) bool {
			return c == ',' || c == ';' || c == '?' || c == '&' || isPlain(c) && unicode.IsSpace(c)
		}
	}
	return nil
}
