package system

import (
	"math/rand/v2"
	"strings"
	"unicode"
)

// spelling writes names in other spellings. Its spellings come from Unicode's charts, not from the
// code under test.
type spelling struct{ *rand.Rand }

// characters has texts. Each text comes with other texts that are equal to it after NFKC and case
// folding.
var characters = []struct {
	text   string
	others []string
}{
	{"ffi", []string{"ﬃ", "FFI", "ﬀi", "fﬁ"}}, {"fi", []string{"ﬁ", "FI"}}, {"ss", []string{"ß", "ẞ", "ſs"}}, {"st", []string{"ﬆ", "ﬅ"}},
	{"é", []string{"É", "e\u0301", "E\u0301", "ｅ\u0301"}}, {"ß", []string{"ss", "SS", "ẞ"}}, {"ω", []string{"Ω", "\u2126"}}, {"ς", []string{"σ", "Σ"}},
	{"å", []string{"Å", "\u212b", "a\u030a"}}, {"k", []string{"\u212a"}}, {"s", []string{"ſ"}}, {"iv", []string{"ⅳ", "Ⅳ"}}, {"c", []string{"ⅽ"}},
	{"0", []string{"⓪", "⁰", "₀"}}, {"1", []string{"①", "¹", "₁"}}, {"2", []string{"②", "²", "₂"}}, {"9", []string{"⑨", "⁹", "₉"}},
	{"-", []string{"－", "﹣"}}, {"_", []string{"＿"}}, {"/", []string{"／"}}, {".", []string{"．", "․"}}, {"@", []string{"＠", "﹫"}}, {":", []string{"：", "﹕"}},
}

// unseen are invisible characters.
var unseen = []string{
	"\u00ad", "\u034f", "\u061c", "\u115f", "\u1160", "\u17b4", "\u180b", "\u180e", "\u200b", "\u200c", "\u200d", "\u200e", "\u202e", "\u2060",
	"\u2066", "\u2069", "\u3164", "\ufe0f", "\ufeff", "\uffa0", "\U000e0061", "\U000e0101", "\t", "\n", "\u0000", "\u0085",
}

// one returns one of the texts.
func (s spelling) one(of ...string) string { return of[s.IntN(len(of))] }

// name returns another spelling of a name. Spellings differ in case or width, or have mathematical
// letters, ligatures or separate accents. A spelling may also have joiners after characters outside
// ASCII.
func (s spelling) name(of string) string {
	switch s.IntN(6) {
	case 0:
		return strings.ToUpper(of)
	case 1:
		return wide(of)
	case 2:
		return wide(strings.ToUpper(of))
	}
	share, joined := s.IntN(3), s.IntN(4) == 0
	var b strings.Builder
	for of != "" {
		n := 0
		if s.IntN(3) <= share {
			var as string
			if n, as = s.character(of); n > 0 {
				b.WriteString(as)
			}
		}
		if n == 0 {
			r := []rune(of)[0]
			n = len(string(r))
			b.WriteRune(r)
		}
		of = of[n:]
		if last := []rune(b.String()); joined && last[len(last)-1] > unicode.MaxASCII && s.IntN(2) == 0 {
			b.WriteString(s.one("\u200c", "\u200d", "\ufe0f"))
		}
	}
	return b.String()
}

// character returns another spelling of the first n bytes of a text. n is 0 if no other spelling is
// known.
func (s spelling) character(of string) (n int, as string) {
	for _, c := range characters {
		if strings.HasPrefix(of, c.text) && s.IntN(2) == 0 {
			return len(c.text), s.one(c.others...)
		}
	}
	letter := rune(of[0])
	switch {
	case letter >= 'a' && letter <= 'z':
		letter -= 'a'
	case letter >= 'A' && letter <= 'Z':
		letter -= 'A'
	case letter >= '0' && letter <= '9':
		digit := letter - '0'
		return 1, string([]rune{'０' + digit, 0x1D7CE + 10*rune(s.IntN(5)) + digit}[s.IntN(2)])
	default:
		return 0, ""
	}
	alphabet := 0x1D400 + 26*rune(s.IntN(26)) // bold, italic, script and so on, alternating capital and small letters
	all := []rune{'A' + letter, 'a' + letter, 'Ａ' + letter, 'ａ' + letter, 'Ⓐ' + letter, 'ⓐ' + letter, alphabet + letter}
	for {
		if r := all[s.IntN(len(all))]; unicode.In(r, unicode.L, unicode.So) { // the alphabets have holes
			return 1, string(r)
		}
	}
}

// wide replaces the ASCII characters of a text by full-width characters.
func wide(of string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r <= '~' {
			return r + 0xFEE0
		}
		return r
	}, of)
}

// action returns another spelling of an action type. A policy that denies the original type also
// denies this spelling. If words is true, the denied type has no *, so hyphens and underscores
// count as dots.
func (s spelling) action(of string, words bool) string {
	var b strings.Builder
	for _, r := range of {
		switch {
		case r == '.' || words && strings.ContainsRune("_-", r):
			for b.WriteString(s.one(".", "..", "...")); words && s.IntN(2) == 0; {
				b.WriteString(s.one("_", "-", ".", "__"))
			}
		case s.IntN(2) == 0:
			b.WriteRune(unicode.ToUpper(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden returns an ASCII name with an added invisible character or control character.
func (s spelling) hidden(of string) string {
	at := 1 + s.IntN(len(of)-1)
	return of[:at] + s.one(unseen...) + of[at:]
}
