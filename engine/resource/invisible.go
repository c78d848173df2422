package resource

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsInvisible reports whether r is invisible or changes the order of the text around it, wherever
// it stands. Two texts that differ only in such characters look the same. The characters are
// Unicode's category Cf, which has the bidirectional controls, and U+034F, U+115F-1160,
// U+17B4-17B5, U+180B-180F, U+3164, U+FE00-FE0F, U+FFA0 and U+E0100-E01EF.
func IsInvisible(r rune) bool {
	return r >= utf8.RuneSelf && (unicode.In(r, unicode.Cf, unicode.Variation_Selector) ||
		strings.ContainsRune("\u034F\u115F\u1160\u17B4\u17B5\u3164\uFFA0", r))
}

// Visible returns s without its invisible characters.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if IsInvisible(r) {
			return -1
		}
		return r
	}, s)
}

// FindInvisible returns the first invisible character of s, except for ordinary ones. Scripts and
// emoji need some invisible characters: a joiner (U+200C, U+200D) or a variation selector is
// ordinary right after a character outside ASCII.
func FindInvisible(s string) (r rune, found bool) {
	prev := rune(0)
	for _, r := range s {
		if IsInvisible(r) && (prev < utf8.RuneSelf || !followsVisible(r)) {
			return r, true
		}
		prev = r
	}
	return 0, false
}

// followsVisible reports whether r is ordinary after a character outside ASCII.
func followsVisible(r rune) bool {
	return r == 0x200C || r == 0x200D || unicode.Is(unicode.Variation_Selector, r)
}
