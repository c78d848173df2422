package resource

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of this package, each with its reason.
const (
	// MaxLength is the greatest length of a resource in bytes.
	MaxLength = 8192
	// maxHosts bounds a list of hosts. Each host is read with the whole path. So the work grows
	// with the number of hosts times the length of the path.
	maxHosts = 64
)

// checkText refuses text that is invalid in every form. Such a text has control or invisible
// characters, surrounding white space, or bytes that are not UTF-8.
func checkText(s string) *Error {
	switch {
	case s == "":
		return &Error{"it is empty"}
	case len(s) > MaxLength:
		return &Error{"it is longer than 8192 bytes"}
	case !utf8.ValidString(s):
		return &Error{"it is not valid UTF-8"}
	case strings.ContainsFunc(s, unicode.IsControl):
		return &Error{"it has a control character"}
	case strings.TrimSpace(s) != s:
		return &Error{"it starts or ends with white space"}
	}
	if _, found := FindInvisible(s); found {
		return &Error{"it has an invisible character"}
	}
	return nil
}

// Escape returns the byte that the escape at the start of s stands for.
func Escape(s string) (byte, bool) { return escapeAt(s, 0) }

// escapeAt returns the byte that the escape at s[i:] stands for.
func escapeAt(s string, i int) (byte, bool) {
	if i+2 >= len(s) {
		return 0, false
	}
	return escapeOf(s[i], s[i+1], s[i+2])
}

func escapeOf(sign, high, low byte) (byte, bool) {
	hi, lo := unhex(high), unhex(low)
	return hi<<4 | lo, sign == '%' && hi < 16 && lo < 16
}

func unhex(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xFF
}

func hasEscape(s string) bool { return len(Decode(s)) < len(s) }

// Decode decodes every escape of s once. The result may not be valid UTF-8.
func Decode(s string) string { return decoded(s, false) }

// decodeAll decodes s until no escape is left. It needs several rounds, because a decoded
// character may complete another escape.
func decodeAll(s string) string { return decoded(s, true) }

func decoded(s string, again bool) string {
	start := strings.IndexByte(s, '%')
	if start < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:start]...)
	done := start // no escape ends before the first %
	for i := start; i < len(s); i++ {
		b = append(b, s[i])
		for n := len(b) - 3; n >= done; n = len(b) - 3 {
			c, ok := escapeOf(b[n], b[n+1], b[n+2])
			if !ok {
				break
			}
			if b = append(b[:n], c); !again {
				done = len(b)
			}
		}
	}
	return string(b)
}

// escapedBytes returns s with the bytes that are not UTF-8 as escapes. Programs keep or replace such
// bytes. None of them is a separator.
func escapedBytes(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			b.Write([]byte{'%', hexDigits[s[0]>>4], hexDigits[s[0]&15]})
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// canonical returns the canonical form of s. In s a % starts an escape.
func canonical(s string) string { return canonicalForm(s, true) }

// letters returns the canonical form of s. In s the characters % ? # are letters.
func letters(s string) string { return canonicalForm(s, false) }

func canonicalForm(s string, escapes bool) string {
	start := 0 // the bytes before it are in canonical form
	for start < len(s) && !changes(s[start], escapes) {
		start++
	}
	if start == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	b.WriteString(s[:start])
	for s = s[start:]; s != ""; {
		r, size, escaped := nextRune(s, escapes)
		bad := r == utf8.RuneError && (size == 1 || escaped && size == len("%FF")) || unicode.IsControl(r)
		switch {
		case escaped && (bad || strings.ContainsRune("!$&'()*+,;=:@/?#%", r)):
			b.WriteString(strings.ToUpper(s[:size]))
		case bad || r == '%' || !escapes && (r == '?' || r == '#'):
			for _, c := range []byte(s[:size]) {
				b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
			}
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

const hexDigits = "0123456789ABCDEF"

// changes reports whether c may be different in the canonical form.
func changes(c byte, escapes bool) bool {
	return c < ' ' || c >= 0x7F || c == '%' || !escapes && (c == '?' || c == '#')
}

// nextRune returns the first character of s, its length in bytes, and whether it is written in
// escapes. If the bytes are not UTF-8, r is utf8.RuneError, and size covers one byte or one
// escape.
func nextRune(s string, escapes bool) (r rune, size int, escaped bool) {
	var bytes [utf8.UTFMax]byte
	n := 0
	for escapes && n < len(bytes) {
		if bytes[n], escaped = escapeAt(s, 3*n); !escaped {
			break
		}
		n++
	}
	if n == 0 {
		r, size = utf8.DecodeRuneInString(s)
		return r, size, false
	}
	r, size = utf8.DecodeRune(bytes[:n])
	return r, 3 * size, true
}

// resolve removes the dot segments of path. For a dot segment dots returns 1 or 2, the number of
// its dots. For a first segment that .. cannot leave it returns rootDots, and for any other
// segment 0. A relative path keeps each ".." that leads out of it.
func resolve(path string, dots func(segment string) int) string {
	if !hasDots(path, dots) {
		return path
	}
	relative, absolute := strings.CutPrefix(path, "/")
	segments := strings.Split(relative, "/")
	out := make([]string, 0, len(segments))
	kept := 0 // the first segments that no .. removes
	for i, segment := range segments {
		n, directory := dots(segment), i == len(segments)-1 // a dot segment at the end names a directory
		if n == rootDots && len(out) == 0 {
			kept = 1
		}
		switch {
		case n <= 0:
			out, directory = append(out, segment), false
		case n == 2 && len(out) > kept:
			out = out[:len(out)-1]
		case n == 2 && !absolute:
			out, directory = append(out, ".."), false
			kept++
		}
		if directory {
			out = append(out, "")
		}
	}
	resolved := strings.Join(out, "/")
	switch {
	case absolute:
		return "/" + resolved
	case resolved == "":
		return "."
	}
	return resolved
}

const rootDots = -1

func hasDots(path string, dots func(string) int) bool {
	if !strings.HasPrefix(path, ".") && !strings.Contains(path, "/.") && !strings.Contains(path, "%2") {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if dots(segment) > 0 {
			return true
		}
	}
	return false
}

// literalDots returns the number of dots if segment is a dot segment (. or ..), otherwise 0. An
// escaped dot is not a dot.
func literalDots(segment string) int {
	if segment == "." || segment == ".." {
		return len(segment)
	}
	return 0
}

// encodedDots returns the same as literalDots, except that an escaped dot (%2e) is also a dot.
func encodedDots(segment string) int {
	if len(segment) > len("%2e%2e") || segment == "" {
		return 0
	}
	return literalDots(strings.ReplaceAll(asciiLower(segment), "%2e", "."))
}

// mergeSlashes replaces every run of slashes in path by one slash.
func mergeSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

func slashed(s string) string { return strings.ReplaceAll(s, `\`, "/") }
