// Package invisible knows the characters that a reader cannot see or that
// change the order of the text around them: two texts that differ in nothing
// else look the same.
//
// The set is Unicode's category Cf, which holds the bidirectional controls, with
// U+034F, U+115F-1160, U+17B4-17B5, U+180B-180F, U+3164, U+FE00-FE0F, U+FFA0 and
// U+E0100-E01EF. Scripts and emoji need some of them: a joiner (U+200C, U+200D)
// or a variation selector is ordinary right after a character outside ASCII.
package invisible

import (
	"unicode"
	"unicode/utf8"
)

// Is reports whether r is in the set, wherever it stands.
func Is(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	return unicode.Is(others, r) || unicode.Is(unicode.Cf, r)
}

var others = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034F, Hi: 0x034F, Stride: 1},
		{Lo: 0x115F, Hi: 0x1160, Stride: 1},
		{Lo: 0x17B4, Hi: 0x17B5, Stride: 1},
		{Lo: 0x180B, Hi: 0x180F, Stride: 1},
		{Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1},
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xE0100, Hi: 0xE01EF, Stride: 1}},
}

// Find returns the first character of s that is in the set and not ordinary
// where it stands.
func Find(s string) (r rune, found bool) {
	prev := rune(0)
	for _, r := range s {
		if Is(r) && (prev < utf8.RuneSelf || !followsVisible(r)) {
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
