package reference

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A text is the canonical form in which texts are compared. It has one element for each character
// that a wildcard can match. An element is a plain character, an escaped character (escaped|r), or
// a byte that is not UTF-8 (rawByte|b). In a pattern an element can also be a wildcard
// (wild|index).
type text = []rune

const (
	escaped rune = 1 << 24
	rawByte rune = 1 << 25
	wild    rune = 1 << 26
)

// keptEscapes has the characters that differ from their escapes. For all other characters the
// escape means the character.
const keptEscapes = "!$&'()*+,;=:@/?#%"

func isWild(r rune) bool  { return r&wild != 0 }
func isPlain(r rune) bool { return r < escaped }

// hexAt returns the byte of the escape at t[i], and whether there is an escape.
func hexAt(t text, i int) (byte, bool) {
	if i+2 >= len(t) || t[i] != '%' {
		return 0, false
	}
	hi, lo := hexDigit(t[i+1]), hexDigit(t[i+2])
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0
}

func hexDigit(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return int(r - '0')
	case r >= 'a' && r <= 'f':
		return int(r-'a') + 10
	case r >= 'A' && r <= 'F':
		return int(r-'A') + 10
	}
	return -1
}

// eachEscape calls its function for each character of t. An escape is decoded first. If the bytes
// of an escape are not UTF-8, r is the byte. wasEscape says whether r was escaped.
func eachEscape(t text, one func(r rune, wasEscape bool)) {
	for i := 0; i < len(t); {
		var run []byte
		for {
			b, ok := hexAt(t, i)
			if !ok {
				break
			}
			run = append(run, b)
			i += 3
		}
		if len(run) == 0 {
			one(t[i], false)
			i++
			continue
		}
		for len(run) > 0 {
			r, n := utf8.DecodeRune(run)
			if r == utf8.RuneError && n == 1 {
				r = rawByte | rune(run[0])
			}
			one(r, true)
			run = run[n:]
		}
	}
}

// hasEscape reports whether t has an escape that can be decoded.
func hasEscape(t text) bool {
	for i := range t {
		if _, ok := hexAt(t, i); ok {
			return true
		}
	}
	return false
}

// canon returns the canonical form of a text in which % begins an escape.
func canon(t text) text {
	var out text
	eachEscape(t, func(r rune, esc bool) {
		switch {
		case esc && isPlain(r) && (strings.ContainsRune(keptEscapes, r) || unicode.IsControl(r)):
			r |= escaped
		case !esc && r == '%':
			r |= escaped
		}
		out = append(out, r)
	})
	return out
}

// letters returns the canonical form of a text in which %, ? and # are ordinary characters.
func letters(t text) text {
	out := slices.Clone(t)
	for i, r := range out {
		if r == '%' || r == '?' || r == '#' {
			out[i] |= escaped
		}
	}
	return out
}

// decodeOnce decodes every escape of t once. The only escapes of the result are those that decoding
// revealed.
func decodeOnce(t text) text {
	var out text
	eachEscape(t, func(r rune, _ bool) { out = append(out, r) })
	return out
}

func decodeAll(t text) text {
	for hasEscape(t) {
		t = decodeOnce(t)
	}
	return t
}

// plain replaces the escaped characters of a canonical form by the characters themselves.
func plain(t text) text {
	out := slices.Clone(t)
	for i, r := range out {
		if r&escaped != 0 {
			out[i] = r &^ escaped
		}
	}
	return out
}

// eachRun applies f to each run of unescaped characters in t.
func eachRun(t text, f func(string) string) text {
	var out, run text
	flush := func() {
		if len(run) > 0 {
			out = append(out, text(f(string(run)))...)
			run = nil
		}
	}
	for _, r := range t {
		if isPlain(r) {
			run = append(run, r)
			continue
		}
		flush()
		out = append(out, r)
	}
	flush()
	return out
}

func nfkc(t text) text { return eachRun(t, norm.NFKC.String) }

// show writes a text as a string, with its escapes.
func show(t text) string {
	var b strings.Builder
	for _, r := range t {
		switch {
		case r&rawByte != 0:
			fmt.Fprintf(&b, "%%%02X", r&0xff)
		case r&escaped != 0:
			for _, c := range []byte(string(r &^ escaped)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func splitText(t text, sep rune) []text {
	var out []text
	for {
		i := slices.Index(t, sep)
		if i < 0 {
			return append(out, t)
		}
		out, t = append(out, t[:i]), t[i+1:]
	}
}

func joinText(parts []text, sep rune) text {
	var out text
	for i, p := range parts {
		if i > 0 {
			out = append(out, sep)
		}
		out = append(out, p...)
	}
	return out
}

func indexAny(t text, chars string) int {
	return slices.IndexFunc(t, func(r rune) bool { return isPlain(r) && strings.ContainsRune(chars, r) })
}

func hasPrefix(t text, prefix string) bool {
	p := text(prefix)
	return len(t) >= len(p) && slices.Equal(t[:len(p)], p)
}

// forward turns backslashes into slashes.
func forward(t text) text {
	out := slices.Clone(t)
	for i, r := range out {
		if r == '\\' {
			out[i] = '/'
		}
	}
	return out
}

func concat(parts ...text) text { return slices.Concat(parts...) }
