package engine

import "strings"

// plainBytes are, as bit sets of the lower and the upper half of ASCII, the
// bytes of a path that are their own normal form: unreserved characters,
// sub-delimiters, the slash and : @ [ ] |.
const (
	plainLower = 0x2FFF_FFD2_0000_0000
	plainUpper = 0x57FF_FFFE_AFFF_FFFF
)

func isPlainByte(c byte) bool {
	if c < 64 {
		return plainLower>>c&1 != 0
	}
	return c < 128 && plainUpper>>(c-64)&1 != 0
}

// isPlain reports whether raw is its own only reading. It knows web URLs with
// a plain host and port, and paths without a scheme; what it does not recognise takes
// the long way.
func isPlain(raw string) bool {
	if raw == "" || len(raw) > MaxResourceLength {
		return false
	}
	rest, ok := strings.CutPrefix(raw, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(raw, "http://")
	}
	if !ok {
		return raw[0] != '.' && isPlainPath(raw, false)
	}
	end := plainHost(rest)
	return end > 0 && isPlainPath(rest[end:], true)
}

// plainHost returns the length of the host and port that s starts with, 0
// unless the host is lower-case letters, digits and hyphens, its last label
// starting with a letter, none Punycode, up to a slash.
func plainHost(s string) int {
	label := 0
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', isDigit(c):
		case c == '-':
			if i == label+3 && s[label:i] == "xn-" {
				return 0
			}
		case c == '.' && i > label:
			label = i + 1
		case c == '/' && i > label && s[label] >= 'a':
			return i
		case c == ':' && i > label && s[label] >= 'a':
			return plainPort(s, i+1)
		default:
			return 0
		}
	}
	return 0
}

// plainPort returns the end of the port that starts at s[start:], 0 unless it
// is up to four digits that are no default port's.
func plainPort(s string, start int) int {
	for i := start; i < len(s); i++ {
		switch {
		case s[i] == '/':
			port := s[start:i]
			if port == "" || len(port) > 4 || port[0] == '0' || port == "80" || port == "443" {
				return 0
			}
			return i
		case !isDigit(s[i]):
			return 0
		}
	}
	return 0
}

// isPlainPath reports whether the path s is normal. Only a URL may have : or @
// in its path, and a query.
func isPlainPath(s string, url bool) bool {
	var prev byte
	for i := range len(s) {
		c := s[i]
		if !isPlainByte(c) {
			return c == '?' && url && isPlainQuery(s[i+1:])
		}
		if prev == '/' && (c == '/' || c == '.') || !url && (c == ':' || c == '@') {
			return false
		}
		prev = c
	}
	return true
}

func isPlainQuery(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isPlainByte(c) && c != '?' || c == '\'' {
			return false
		}
	}
	return s != ""
}
