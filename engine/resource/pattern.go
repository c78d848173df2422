package resource

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Wild is the first of the characters that stand for wildcards while a pattern is read. The
// characters from Super on stand for **. All of them are private use characters, which no reader
// changes. There are more of them than any pattern has wildcards.
const (
	Wild  = '\U000F0000'
	Super = Wild + 2048
)

// IsWild reports whether r stands for a wildcard.
func IsWild(r rune) bool { return r >= Wild && r < Super+(Super-Wild) }

// endsInSuper reports whether s ends in a **. Such a text may match more segments.
func endsInSuper(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return IsWild(r) && r >= Super
}

// ReadPattern returns the readings of a pattern. In them [Wild] characters stand for the
// wildcards. A pattern without a scheme is read by every reader, because it may match resources of
// every form. A pattern with a wildcard in its scheme may match a web URL and a service. A pattern
// that blocks is also read in other forms.
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
		_ = t.readWeb() // if it is not a web URL, only the service remains
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

// ReadQuoted returns the readings of a pattern in which no character is a wildcard.
func ReadQuoted(s string, side Side) ([]Reading, error) {
	if side != ForBlock && side != ForAllow {
		return nil, errNoSide
	}
	r, t, err := readAllowed(s)
	// The readings of a block can only be refused for the hosts of a service.
	if err == nil && t.form != formWeb && strings.IndexByte(s, ':') >= 0 {
		_, err = readAny(s)
	}
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

// Separators returns pattern with every backslash doubled if it is a pattern for Windows: a
// doubled backslash is a letter. In other patterns a backslash escapes the next character.
func Separators(pattern string) string {
	if strings.IndexByte(pattern, '\\') < 0 || !forWindows.MatchString(pattern) {
		return pattern
	}
	return strings.ReplaceAll(pattern, `\`, `\\`)
}

// forWindows matches a pattern with a drive or two backslashes at its start, or with a backslash
// before a letter or digit.
var forWindows = regexp.MustCompile(
	`(?s)^(?:[A-Za-z]:[/\\]|\\\\|(?:[^\\]|\\[^0-9A-Za-z\x{80}-\x{10FFFF}])*\\[0-9A-Za-z\x{80}-\x{10FFFF}])`,
)
