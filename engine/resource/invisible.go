package resource

import (
	"unicode"
	"unicode/utf8"
)

// IsInvisible reports whether r is a character that a reader cannot see or that
// changes the order of the text around it, wherever it stands: two texts that
// differ in nothing else look the same. These are Unicode's category Cf, which
// holds the bidirectional controls, and U+034F, U+115F-1160, U+17B4-17B5,
// U+180B-180F, U+3164, U+FE00-FE0F, U+FFA0 and U+E0100-E01EF.
func IsInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	return unicode.Is(alsoInvisible, r) || unicode.Is(unicode.Cf, r)
}

var alsoInvisible = &unicode.RangeTable{
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

// FindInvisible returns the first invisible character of s that is not ordinary
// where it stands. Scripts and emoji need some: a joiner (U+200C, U+200D) or a
// variation selector is ordinary right after a character outside ASCII.
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
