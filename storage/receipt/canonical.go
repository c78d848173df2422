package receipt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"unicode/utf8"
)

// DigestLen is the length of a digest: see [DigestBytes].
const DigestLen = len(digestPrefix) + 2*sha256.Size

const (
	digestPrefix = "sha256:"
	lowerHex     = "0123456789abcdef"
)

// DigestBytes returns "sha256:" and the lower-case hex SHA-256 of its argument. The argument must
// already be canonical JSON, because DigestBytes hashes the bytes unchanged.
func DigestBytes(canonical []byte) string {
	var buf [DigestLen]byte
	return string(AppendDigest(buf[:0], canonical))
}

// AppendDigest appends the result of [DigestBytes], which has DigestLen bytes.
func AppendDigest(dst, canonical []byte) []byte {
	sum := sha256.Sum256(canonical)
	return hex.AppendEncode(append(dst, digestPrefix...), sum[:])
}

// AppendString appends the canonical JSON string of s, quotes included.
// s must be valid UTF-8. An invalid byte is written as U+FFFD, so two invalid strings can
// have the same canonical form. Validate strings before hashing. It does not allocate
// when dst has room.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := skipPlain(s, 0); i < len(s); i = skipPlain(s, i) {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			dst = appendEscape(append(dst, s[start:i]...), c)
			start = i + 1
		}
		i++
	}
	return append(append(dst, s[start:]...), '"')
}

// AppendMember appends name unchanged, such as `,"kid":`, and the canonical JSON string of s.
func AppendMember(dst []byte, name, s string) []byte { return AppendString(append(dst, name...), s) }

// IsPlain reports whether s is ASCII text that needs no escapes in JSON.
func IsPlain(s string) bool { return skipPlain(s, 0) == len(s) }

// skipPlain moves i forward, eight bytes at a time, while these bytes are plain: ASCII that needs
// no escape. If the remaining bytes are plain too, it moves i to the end. Nearly all text is plain,
// and each decision hashes its text three times.
func skipPlain(s string, i int) int {
	n := len(s)
	for ; i+8 <= n; i += 8 {
		if !plain(word(s[i:])) {
			return i
		}
	}
	if i < n && n >= 8 && plain(word(s[n-8:])) { // these have the rest, and bytes before it
		return n
	}
	w := uint64(spaces) // eight plain characters
	for k := i; k < n; k++ {
		w = w<<8 | uint64(s[k])
	}
	if plain(w) {
		return n
	}
	return i
}

const (
	ones   = 0x0101010101010101
	highs  = ones << 7
	spaces = ones * ' '
)

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// plain reports whether w has only plain bytes. A plain byte is ASCII, and no control character,
// quote or backslash. Each term of the expression sets the high bit of every other byte. It may
// also set the high bit of the byte after such a byte.
func plain(w uint64) bool {
	quote, backslash := w^ones*'"', w^ones*'\\'
	return (w|(w-spaces)|(quote-ones)|(backslash-ones))&highs == 0
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	return append(dst, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&0xf])
}

// AppendInt appends n in decimal. The result is canonical if n is within ±(2^53-1). Callers must
// refuse other numbers, because many JSON readers round them. It does not allocate when dst has
// room.
func AppendInt(dst []byte, n int64) []byte {
	return strconv.AppendInt(dst, n, 10)
}

// AppendStrings appends the canonical JSON array of list. A nil list is written as [].
// For invalid UTF-8 see AppendString. It does not allocate when dst has room.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}

// AppendMap appends the canonical JSON object of m, keys sorted by UTF-16 code units. A
// nil map is written as {}. For invalid UTF-8 see AppendString. It does not allocate when
// dst has room and m has at most 32 keys.
func AppendMap(dst []byte, m map[string]string) []byte {
	var few [32]string
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, compareUTF16)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, name), ':')
		dst = AppendString(dst, m[name])
	}
	return append(dst, '}')
}

// compareUTF16 compares by UTF-16 code units, as RFC 8785 §3.2.3 demands. A comparison of bytes
// gives another order in one case. One rune is beyond the basic plane, so it begins with a
// surrogate. The other rune is in U+E000–U+FFFF.
func compareUTF16(a, b string) int {
	for len(a) > 0 && len(b) > 0 {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return cmp.Compare(rankUTF16(ra), rankUTF16(rb))
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

func rankUTF16(r rune) rune {
	if 0xE000 <= r && r <= 0xFFFF {
		return r + utf8.MaxRune
	}
	return r
}
