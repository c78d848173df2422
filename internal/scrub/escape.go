package scrub

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// decoded decodes the escapes of text, up to maxRounds-1 times, and appends the secrets of
// each reading as spans of text.
func (s *Scrubber) decoded(spans []span, text string, j *job) []span {
	reading := text
	var at []int // of each byte of the reading and of its end, in text; nil: the same
	for range maxRounds - 1 {
		next, nextAt, changed := unescape(reading, at)
		if !changed {
			return spans
		}
		reading, at = next, nextAt
		for _, sp := range s.once(nil, reading, s.prefilter.scan(reading), j) {
			spans = append(spans, span{at[sp.start], at[sp.end], sp.kind})
		}
	}
	if _, _, changed := unescape(reading, at); changed {
		spans = append(spans, span{0, len(text), KindUnread})
	}
	return spans
}

// unescape decodes the escapes of s and replaces compatibility characters by ordinary
// ones. at gives the place of each byte of s in another text.
func unescape(s string, at []int) (string, []int, bool) {
	place := func(i int) int {
		if at == nil {
			return i
		}
		return at[i]
	}
	out, from := make([]byte, 0, len(s)), make([]int, 0, len(s)+1)
	changed := false
	for i := 0; i < len(s); {
		start, decoded, n := i, "", 0
		if marks[s[i]]&(isEscape|isWide) != 0 {
			decoded, n = escapeAt(s[i:])
		}
		if changed = changed || n > 0; n == 0 {
			decoded, n = s[i:i+1], 1
		}
		i += n
		for range len(decoded) {
			from = append(from, place(start))
		}
		out = append(out, decoded...)
	}
	return string(out), append(from, place(len(s))), changed
}

// escapeAt decodes the escape at the start of s, which is not empty, and returns its
// length n; n is 0 if s starts with no escape.
func escapeAt(s string) (decoded string, n int) {
	switch {
	case s[0] >= utf8.RuneSelf:
		return asASCII(s)
	case s[0] == '%' && len(s) > 1 && s[1] != 'u':
		return hexadecimal(s, 1, 2, func(c rune) string { return string([]byte{byte(c)}) })
	case strings.HasPrefix(s, "%u"), strings.HasPrefix(s, `\u`):
		return hexadecimal(s, 2, 4, character)
	case strings.HasPrefix(s, `\x`):
		return hexadecimal(s, 2, 2, character)
	case strings.HasPrefix(s, "&#"):
		return reference(s)
	}
	return "", 0
}

func character(c rune) string { return string(c) }

// hexadecimal decodes the hexadecimal digits that begin at s[start]. digits is their
// number.
func hexadecimal(s string, start, digits int, decode func(rune) string) (string, int) {
	c := rune(0)
	for i := start; i < start+digits; i++ {
		d := hexAt(s, i)
		if d < 0 {
			return "", 0
		}
		c = c<<4 | rune(d)
	}
	return decode(c), start + digits
}

// reference decodes a numeric character reference of HTML.
func reference(s string) (string, int) {
	const longest = len("&#x10FFFF;")
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 0 {
		return "", 0
	}
	digits, base := s[len("&#"):end], 10
	if strings.HasPrefix(digits, "x") || strings.HasPrefix(digits, "X") {
		digits, base = digits[1:], 16
	}
	c, err := strconv.ParseUint(digits, base, 21)
	if err != nil {
		return "", 0
	}
	return character(rune(c)), end + 1
}

// asASCII returns the ASCII text that the first character of s looks like, and the length of
// that character: "A" for a full-width A, "" for an invisible character. The length is 0
// for a character that does not look like ASCII. Such a character is not decomposed,
// because the result could be many times as long.
func asASCII(s string) (string, int) {
	c, n := utf8.DecodeRuneInString(s)
	if unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Variation_Selector, c) {
		return "", n
	}
	plain := norm.NFKC.PropertiesString(s[:n]).Decomposition()
	if len(plain) == 0 || slices.Max(plain) >= utf8.RuneSelf {
		return "", 0
	}
	return string(plain), n
}

// hexAt returns the value of the hexadecimal digit s[i], or -1.
func hexAt(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	return int(hexDigits.values[s[i]])
}
