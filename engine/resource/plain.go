package resource

import "strings"

// plainBytes are, as bit sets of the lower and the upper half of ASCII, the bytes
// of a path that every reader takes for themselves: letters, digits and
// ! $ & ' ( ) * + , - . / : = @ _ ~ [ ] | and the space.
const (
	plainLower = 0x27FF_FFD3_0000_0000
	plainUpper = 0x57FF_FFFE_AFFF_FFFF
)

func isPlainByte(c byte) bool {
	if c < 64 {
		return plainLower>>c&1 != 0
	}
	return c < 128 && plainUpper>>(c-64)&1 != 0
}

// readPlain returns the readings of a resource that every reader of its form
// takes for itself: a web URL with a plain host and port, or a name. It
// recognises most resources and takes no others; those take the long way.
func readPlain(raw string) (Readings, bool) {
	if raw == "" || len(raw) > MaxLength || raw[0] == ' ' || raw[len(raw)-1] == ' ' {
		return Readings{}, false
	}
	rest, web := strings.CutPrefix(raw, "https://")
	if !web {
		rest, web = strings.CutPrefix(raw, "http://")
	}
	if !web {
		return plainReadings(raw, formName, POSIX, 0), isPlainName(raw)
	}
	start := plainHost(rest)
	if start == 0 {
		return Readings{}, false
	}
	end := plainPath(rest[start:])
	if end < 0 {
		return Readings{}, false
	}
	query := len(rest) - start - end
	return plainReadings(raw, formWeb, Client|Browser|Server|Literal, query), true
}

// plainReadings returns the readings of raw, which ends in a query of that length.
func plainReadings(raw string, f form, readers Reader, query int) Readings {
	r := Readings{raw: raw, normal: raw, form: f, plain: [2]Reading{{raw, readers | Raw}, {}}, plains: 1}
	if query > 0 {
		r.plain[1], r.plains = Reading{raw[:len(raw)-query], readers}, 2
	}
	return r
}

// isPlainName reports whether s is a path or another name with one reading.
func isPlainName(s string) bool {
	if s[0] == '.' || strings.IndexByte(s, '@') >= 0 || strings.IndexByte(s, '?') >= 0 {
		return false
	}
	if colon := strings.IndexByte(s, ':'); colon >= 0 &&
		(colon+1 < len(s) && s[colon+1] == '/' || asciiLower(s[:colon]) != s[:colon] ||
			isWeb(s[:colon]) || isAddressScheme(s[:colon]) || s[:colon] == "file") {
		return false
	}
	return plainPath(s) == len(s)
}

// plainHost returns the length of the host and port that s starts with, 0 unless
// the host is lower-case letters, digits and hyphens, its last label starting
// with a letter, none Punycode, up to a slash.
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

// plainPort returns the end of the port that starts at s[start:], 0 unless it is
// up to four digits that are no default port's.
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

// plainPath returns the length of the path that s starts with, or -1 where that
// or the query behind it is not plain.
func plainPath(s string) int {
	var prev byte
	for i := range len(s) {
		c := s[i]
		if c == '?' && prev != '/' {
			return plainQuery(s, i)
		}
		if !isPlainByte(c) || prev == '/' && (c == '/' || c == '.') {
			return -1
		}
		prev = c
	}
	if prev == '/' && len(s) > 1 {
		return -1 // a block also looks at it without its slash
	}
	return len(s)
}

// plainQuery returns start, where the query of s starts, or -1.
func plainQuery(s string, start int) int {
	for i := start + 1; i < len(s); i++ {
		if c := s[i]; !isPlainByte(c) && c != '?' {
			return -1
		}
	}
	return start
}
