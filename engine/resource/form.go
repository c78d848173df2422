package resource

import (
	"regexp"
	"strings"
	"unicode"
)

type form uint8

const (
	formName form = iota
	formWeb
	formFile
	formWindows
	formService
	formAddresses
)

// schemes has the schemes that determine the form of a resource. The map never changes.
var schemes = map[string]form{
	"http": formWeb, "https": formWeb, "ws": formWeb, "wss": formWeb, "ftp": formWeb, "file": formFile,
	"mailto": formAddresses, "sms": formAddresses, "tel": formAddresses,
}

// classify returns the form of s. For forms with a scheme it also returns the scheme in lower
// case, and the text after the scheme's colon. A scheme may contain [Wild] characters.
func classify(s string) (f form, scheme, rest string) {
	scheme, rest, ok := cutScheme(s)
	switch f := schemes[scheme]; {
	case f == formWeb || f == formFile || f == formAddresses && !strings.HasPrefix(rest, "//"):
		return f, scheme, rest
	case isDrive(s) || strings.HasPrefix(s, `\\`):
		return formWindows, "", s
	}
	for ; ok; _, rest, ok = cutScheme(rest) { // this may be a chain of schemes, such as jdbc:postgresql
		if strings.HasPrefix(rest, "//") {
			return formService, asciiLower(s[:len(s)-len(":")-len(rest)]), rest
		}
	}
	if looksLikeAddresses(s) {
		return formAddresses, "", s
	}
	return formName, "", s
}

// wrappedURL matches a web or file URL within angle brackets or after URL: (RFC 3986, appendix C).
var wrappedURL = regexp.MustCompile(
	`(?is)^(?:<(?:url:[\s\p{Z}]*)?(?:https?|wss?|ftp|file):.*>|url:[\s\p{Z}]*(?:https?|wss?|ftp|file):.*)$`,
)

// isDrive reports whether s starts with a drive letter, a colon and a slash or
// backslash.
func isDrive(s string) bool {
	return len(s) >= 3 && isAlpha(s[0]) && s[1] == ':' && (s[2] == '/' || s[2] == '\\')
}

// cutScheme cuts the scheme (RFC 3986, 3.1) and its colon off s.
func cutScheme(s string) (scheme, rest string, ok bool) {
	for i, r := range s {
		switch {
		case r < 0x80 && isAlpha(byte(r)), IsWild(r), i > 0 &&
			(r >= '0' && r <= '9' || r == '+' || r == '-' || r == '.'):
		case r == ':' && i > 0:
			return asciiLower(s[:i]), s[i+1:], true
		default:
			return "", s, false
		}
	}
	return "", s, false
}

// looksLikeAddresses reports whether s is a list of mail addresses. Commas and semicolons separate
// the entries. An entry has the form a@b.example or words <a@b.example>.
func looksLikeAddresses(s string) bool {
	if strings.IndexByte(s, '@') < 0 || strings.ContainsAny(s, `/\:`) {
		return false
	}
	for entry := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ';' }) {
		entry = strings.TrimSpace(entry)
		if open := strings.IndexByte(entry, '<'); open >= 0 && strings.HasSuffix(entry, ">") {
			entry = entry[open+1 : len(entry)-1]
		}
		domain := entry[strings.LastIndexByte(entry, '@')+1:]
		if strings.IndexByte(entry, '@') < 0 || strings.ContainsFunc(entry, unicode.IsSpace) ||
			strings.IndexByte(domain, '.') < 0 || !strings.ContainsFunc(domain, unicode.IsLetter) {
			return false
		}
	}
	return true
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// asciiLower returns s with its ASCII letters in lower case.
func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r | 0x20
		}
		return r
	}, s)
}
