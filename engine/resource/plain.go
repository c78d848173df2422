package resource

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// plainLower and plainUpper are bit sets of the lower and the upper half of ASCII. They have the
// bytes of a path that every reader reads unchanged: letters, digits, the space and ! $ & ' ( ) *
// + , - . / : = @ _ ~ [ ] |.
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

// readPlain returns the readings of a plain resource: all readers of its form read it in the same
// way. It is a web URL with a plain host and port, or a name. readPlain recognises most plain
// resources. It returns false for any other resource, which [readAny] reads.
func readPlain(raw string) (Readings, bool) {
	if raw == "" || len(raw) > MaxLength || raw[0] == ' ' || raw[len(raw)-1] == ' ' {
		return Readings{}, false
	}
	rest, web := strings.CutPrefix(raw, "https://")
	if !web {
		rest, web = strings.CutPrefix(raw, "http://")
	}
	if !web {
		return Readings{raw: raw, normal: raw, plain: POSIX}, isPlainName(raw)
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
	return Readings{raw: raw, normal: raw, form: formWeb, plain: Client | Browser | Server | Literal, query: query},
		true
}

// isPlainName reports whether s is a path, or another name, that has only one reading.
func isPlainName(s string) bool {
	if s[0] == '.' || strings.IndexByte(s, '@') >= 0 || strings.IndexByte(s, '?') >= 0 {
		return false
	}
	if colon := strings.IndexByte(s, ':'); colon >= 0 &&
		(colon+1 < len(s) && s[colon+1] == '/' || asciiLower(s[:colon]) != s[:colon] ||
			schemes[s[:colon]] != formName) {
		return false
	}
	return plainPath(s) == len(s)
}

// plainHost returns the length of the host and port at the start of s, or 0 if they are not plain.
// A plain host has lower-case letters, digits and hyphens. Its last label starts with a letter,
// and no label is Punycode. A slash follows the host and port. A plain port is not a default port.
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
			port, _, ok := strings.Cut(s[i+1:], "/")
			n, err := strconv.ParseUint(port, 10, 16)
			if !ok || err != nil || port[0] == '0' || n == 80 || n == 443 {
				return 0
			}
			return i + 1 + len(port)
		default:
			return 0
		}
	}
	return 0
}

// plainPath returns the length of the path at the start of s. It returns -1 if the path or its
// query is not plain.
func plainPath(s string) int {
	var prev byte
	for i := range len(s) {
		c := s[i]
		if c == '?' && prev != '/' {
			if strings.ContainsFunc(s[i:], func(r rune) bool {
				return r != '?' && (r >= 0x80 || !isPlainByte(byte(r)))
			}) {
				return -1
			}
			return i
		}
		if !isPlainByte(c) || prev == '/' && (c == '/' || c == '.') {
			return -1
		}
		prev = c
	}
	if prev == '/' && len(s) > 1 {
		return -1 // a block also looks at the path without its last slash
	}
	return len(s)
}

// IsPlainPattern reports whether s is a plain pattern: every reader reads it as it was written, on its side. Its
// wildcards are * and ?, or [Wild] characters that stand for them. IsPlainPattern recognises most plain patterns.
// [ReadPattern] reads any other.
func IsPlainPattern(s string, side Side) bool {
	rest, web := strings.CutPrefix(s, "https://")
	if !web {
		rest, web = strings.CutPrefix(s, "http://")
	}
	if web {
		start := plainPatternHost(rest)
		if start == 0 {
			return false
		}
		rest = rest[start:]
	}
	named := web || strings.IndexByte(s, '/') >= 0 // an @ in it is of no address
	prev := byte(0)
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(rest[i:])
			if !IsWild(r) {
				return false
			}
			prev, i = c, i+size-1
			continue
		}
		switch {
		case c == '?':
		case !isPlainByte(c), c == ' ', c == '[', c == ']':
			return false
		case prev == '.' && (c == '.' || c == '/'), prev == '/' && c == '/':
			return false
		case c == '@' && !named, c == ':' && !web:
			return false
		case 'A' <= c && c <= 'Z' && !web && side == ForBlock: // some readers ignore its case
			return false
		}
		prev = c
	}
	return prev != 0 && prev != '.'
}

// plainPatternHost returns the length of the host at the start of s, or 0 if it is not plain or has a port. It is
// plain if [plainHost] says so of the host with a letter for each of its wildcards.
func plainPatternHost(s string) int {
	const most = 253 // bytes, with a Wild character for each wildcard
	label, wild := 0, 0
	for i, c := range s {
		if i+wild*(utf8.RuneLen(Wild)-1) > most {
			return 0
		}
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', IsWild(c):
		case c == '*', c == '?':
			wild++
		case c == '-':
			if i == label+3 && s[label:i] == "xn-" {
				return 0
			}
		case c == '.' && i > label:
			label = i + 1
		case c == '/' && i > label && !isDigit(s[label]) && s[label] != '-':
			return i
		default:
			return 0
		}
	}
	return 0
}
