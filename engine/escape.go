package engine

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789ABCDEF"

// The characters that a component's normal form percent-encodes, as in the
// WHATWG URL standard. Controls and everything beyond ASCII are not listed:
// the former are refused, the latter always encoded.
const (
	encodePath         = " \"#<>?^`{}"
	encodeQuery        = " \"#<>"
	encodeSpecialQuery = " \"#<>'"
	encodeFragment     = " \"<>`"
)

// checkText refuses what has no single meaning wherever it stands: invalid
// UTF-8, control and invisible characters, surrounding white space, and
// escapes that are incomplete, doubled or hide any of these.
func checkText(s string) *ResourceError {
	if first, _ := utf8.DecodeRuneInString(s); unicode.IsSpace(first) {
		return &ResourceError{"it starts with white space"}
	}
	if last, _ := utf8.DecodeLastRuneInString(s); unicode.IsSpace(last) {
		return &ResourceError{"it ends with white space"}
	}
	if err := checkRunes(s); err != nil {
		return err
	}
	if doubleEncoded(s) {
		return &ResourceError{"it is percent-encoded twice"}
	}
	return nil
}

// checkRunes refuses invalid UTF-8 and escapes, and characters that no
// resource has, also where they are escaped.
func checkRunes(s string) *ResourceError {
	var prev rune
	for i := 0; i < len(s); {
		r, size, err := nextRune(s[i:])
		if err != nil {
			return err
		}
		if err := checkRune(prev, r); err != nil {
			return err
		}
		prev = r
		i += size
	}
	return nil
}

// nextRune decodes the first character of s, written as itself or as escapes,
// and the number of bytes it is written in.
func nextRune(s string) (rune, int, *ResourceError) {
	if s[0] != '%' {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			return 0, 0, &ResourceError{"it is not valid UTF-8"}
		}
		return r, size, nil
	}
	var buf [utf8.UTFMax]byte
	for n := range buf {
		b, ok := escapeAt(s, 3*n)
		if !ok {
			break
		}
		buf[n] = b
		if utf8.FullRune(buf[:n+1]) {
			r, size := utf8.DecodeRune(buf[:n+1])
			if r == utf8.RuneError && size == 1 {
				break
			}
			return r, 3 * (n + 1), nil
		}
	}
	return 0, 0, &ResourceError{"it has a percent-escape that cannot be decoded"}
}

// checkRune refuses controls and characters that are not seen. The two joiners
// are letters' companions in several scripts and in emoji, so they may follow
// a character beyond ASCII.
func checkRune(prev, r rune) *ResourceError {
	switch {
	case unicode.IsControl(r):
		return &ResourceError{"it has a control character"}
	case r < utf8.RuneSelf:
		return nil
	case (r == 0x200C || r == 0x200D) && prev >= utf8.RuneSelf:
		return nil
	case r == softHyphen || r == zeroWidthSpace || r == wordJoiner || r == byteOrderMark:
		return nil // the host drops them, everything else refuses them
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
		return &ResourceError{"it has an invisible character"}
	}
	return nil
}

// The invisible characters that UTS 46 removes from a host.
const (
	softHyphen     = 0x00AD
	zeroWidthSpace = 0x200B
	wordJoiner     = 0x2060
	byteOrderMark  = 0xFEFF
)

func isHostIgnored(r rune) bool {
	return r == softHyphen || r == zeroWidthSpace || r == wordJoiner || r == byteOrderMark
}

// canonical returns s with the escapes of unreserved characters decoded, all
// other escapes in upper case, and the characters of encode and everything
// beyond ASCII percent-encoded.
func canonical(s, encode string) (string, *ResourceError) {
	if isCanonical(s, encode) {
		return s, nil
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, size, err := nextRune(s[i:])
		if err != nil {
			return "", err
		}
		if isHostIgnored(r) {
			return "", &ResourceError{"it has an invisible character"}
		}
		escaped := s[i] == '%'
		switch {
		case r < utf8.RuneSelf && escaped && !isUnreserved(byte(r)),
			r < utf8.RuneSelf && !escaped && strings.IndexByte(encode, byte(r)) >= 0:
			writeEscape(&b, byte(r))
		case r < utf8.RuneSelf:
			b.WriteByte(byte(r))
		default:
			for _, c := range []byte(string(r)) {
				writeEscape(&b, c)
			}
		}
		i += size
	}
	if doubleEncoded(b.String()) {
		return "", &ResourceError{"it is percent-encoded twice"}
	}
	return b.String(), nil
}

func isCanonical(s, encode string) bool {
	for i := range len(s) {
		c := s[i]
		if isPlainByte(c) && c != '\'' {
			continue
		}
		if c == '%' || c >= utf8.RuneSelf || strings.IndexByte(encode, c) >= 0 {
			return false
		}
	}
	return true
}

// decodeExcept returns s, whose escapes are valid, with every escape decoded
// but those of the characters in keep.
func decodeExcept(s, keep string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c, ok := escapeAt(s, i)
		if !ok || strings.IndexByte(keep, c) >= 0 {
			b = append(b, s[i])
			continue
		}
		b = append(b, c)
		i += 2
	}
	return string(b)
}

// decodeSlashes returns s with encoded slashes and backslashes read as slashes.
func decodeSlashes(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c, ok := escapeAt(s, i); ok && (c == '/' || c == '\\') {
			b = append(b, '/')
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// doubleEncoded reports whether s has an encoded percent sign that would start
// an escape once it is decoded.
func doubleEncoded(s string) bool {
	for i := strings.Index(s, "%25"); i >= 0; {
		if i+5 <= len(s) && isHex(s[i+3]) && isHex(s[i+4]) {
			return true
		}
		j := strings.Index(s[i+3:], "%25")
		if j < 0 {
			return false
		}
		i += 3 + j
	}
	return false
}

// escapeAt returns the byte that the escape at s[i:] stands for.
func escapeAt(s string, i int) (byte, bool) {
	if i+3 > len(s) || s[i] != '%' || !isHex(s[i+1]) || !isHex(s[i+2]) {
		return 0, false
	}
	return unhex(s[i+1])<<4 | unhex(s[i+2]), true
}

func writeEscape(b *strings.Builder, c byte) {
	b.WriteByte('%')
	b.WriteByte(hexDigits[c>>4])
	b.WriteByte(hexDigits[c&15])
}

func isUnreserved(c byte) bool {
	return isAlpha(c) || isDigit(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
