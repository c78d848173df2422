package resource

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Wild is the first character that stands for a wildcard while a pattern is read. From Super
// on they stand for a **. They are private use characters, which no reader changes, and
// outnumber the wildcards of any pattern.
const (
	Wild  = '\U000F0000'
	Super = Wild + 2048
)

// IsWild reports whether r is such a character.
func IsWild(r rune) bool { return r >= Wild && r < Super+(Super-Wild) }

// endsInSuper reports whether s ends in a **, which may match more segments.
func endsInSuper(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return IsWild(r) && r >= Super
}

// ReadPattern returns a pattern as each reader reads it, with a [Wild] character for each of
// its wildcards. Every reader reads a pattern without a scheme, because it may match resources
// of every form. A pattern with a wildcard in its scheme may match a web URL and a service. A
// pattern that blocks is also read in other forms.
func ReadPattern(s string, side Side) ([]Reading, error) {
	if side != ForBlock && side != ForAllow {
		return nil, errNoSide
	}
	if err := checkText(s); err != nil {
		return nil, err
	}
	t := newText(s)
	t.pattern = true
	if err := t.readPattern(); err != nil {
		return nil, err
	}
	if side == ForBlock {
		t.readings.list = append(t.readings.list, Reading{s, Raw})
	}
	return patternReadings(t.readings.list, side), nil
}

func (t *text) readPattern() *Error {
	if t.scheme == "" && t.form != formAddresses {
		t.readSchemeless()
		return nil
	}
	err := t.read()
	if err == nil && t.form == formService && strings.ContainsFunc(t.scheme, IsWild) {
		t.form = formWeb
		_ = t.readWeb() // what is no web URL is a service alone
	}
	return err
}

func (t *text) readSchemeless() {
	path := t.raw
	addresses := []string{path}
	if strings.IndexByte(path, '@') >= 0 && !strings.ContainsAny(path, `/\`) {
		addresses = t.address(path)
	}
	for _, s := range addresses {
		t.add(Address|Number, letters(s))
	}
	t.add(POSIX|DecodedPOSIX, letters(posixPath(path)))
	t.add(DecodedPOSIX, letters(posixPath(Decode(path))))
	t.addWindows(path)
	t.addServed("", "", path, posixPath(path))
	t.add(Client, canonical(resolve(path, literalDots)))
	t.add(Browser, canonical(browserPath(path, false)))
	t.add(Literal, canonical(path))
}

// ReadQuoted returns the readings, as a pattern, of a text that stands for itself.
func ReadQuoted(s string, side Side) ([]Reading, error) {
	if side != ForBlock && side != ForAllow {
		return nil, errNoSide
	}
	r, err := readAny(s)
	if err != nil {
		return nil, err
	}
	return patternReadings(append(r.allow, Reading{s, Raw}), side), nil
}

// patternReadings returns readings of a pattern. For a block it adds their NFKC and
// case-folded forms, because the readings of a blocked resource have these forms.
func patternReadings(readings []Reading, side Side) []Reading {
	var all collection
	for _, r := range readings {
		all.add(r.Readers, r.Text)
		if side == ForBlock && r.Readers != Raw {
			all.addFolded(r.Readers, r.Text)
			all.add(r.Readers, composed(r.Text))
		}
	}
	return all.list
}

// Separators returns pattern with every backslash as the letter \\ if it is a pattern for
// Windows. In other patterns a backslash escapes.
func Separators(pattern string) string {
	if !forWindows.MatchString(pattern) {
		return pattern
	}
	return strings.ReplaceAll(pattern, `\`, `\\`)
}

// forWindows is a pattern with a drive or two backslashes at its start, or a
// backslash before a letter or digit.
var forWindows = regexp.MustCompile(
	`(?s)^(?:[A-Za-z]:[/\\]|\\\\|(?:[^\\]|\\[^0-9A-Za-z\x{80}-\x{10FFFF}])*\\[0-9A-Za-z\x{80}-\x{10FFFF}])`,
)
