package resource

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reached returns every address that a mailer may read at an @ of s. Only a block looks at them.
//
// Mailers drop white space, comments, quotes and other characters from a domain. Each mailer ends the
// domain at other characters, and each closes a comment in its own way. So Reached joins the parts of
// a domain, and returns an address for the end of each part.
func Reached(s string) []string { return (&text{}).reached(s, nil) }

// reached returns what [Reached] does, without the known addresses.
func (t *text) reached(s string, known []string) (all []string) {
	var none [1][]int
	comments := none[:]
	if strings.IndexByte(s, '(') >= 0 && strings.IndexByte(s, '@') >= 0 {
		comments = commentEnds(s)
	}
	seen := make(map[string]bool)
	if len(known) > 16 { // a search would take quadratic time
		for _, a := range known {
			seen[a] = true
		}
		known = nil
	}
	for at, next := strings.IndexByte(s, '@'), 0; at >= 0 && next >= 0; at += 1 + next {
		next = strings.IndexByte(s[at+1:], '@')
		local := localBefore(s[:at])
		for _, ends := range comments {
			eachDomain(s, at+1, ends, func(domain string) {
				address := addressAt(s, at, local, domain)
				if slices.Contains(known, address) || seen[address] {
					return
				}
				seen[address] = true
				for _, a := range t.address(address) {
					if a == address || !slices.Contains(known, a) && !seen[a] {
						seen[a] = true
						all = append(all, a)
					}
				}
			})
		}
	}
	return all
}

// addressAt joins the parts of an address. It does not allocate if s has the address at the @.
func addressAt(s string, at int, local, domain string) string {
	if strings.HasSuffix(s[:at], local) && strings.HasPrefix(s[at+1:], domain) {
		return s[at-len(local) : at+1+len(domain)]
	}
	return local + "@" + domain
}

// localBefore returns the last word of s, the text before an @. White space, quotes and backslashes may
// stand between them.
func localBefore(s string) string {
	s = strings.TrimRightFunc(s, func(r rune) bool { return r == '"' || r == '\\' || unicode.IsSpace(r) })
	start := strings.LastIndexFunc(s, func(r rune) bool { return endsList(r) || cutsAddress(r) })
	if start >= 0 {
		_, size := utf8.DecodeRuneInString(s[start:])
		s = s[start+size:]
	}
	return s
}

// eachDomain calls yield with each domain that may begin at s[i:]: the first part, the first two parts
// joined, and so on up to the next @, comma or semicolon. It skips the comments whose ends are given.
func eachDomain(s string, i int, ends []int, yield func(domain string)) {
	domain, length := "", 0
	for i < len(s) && length <= maxDomain {
		start := i
		r, size := utf8.DecodeRuneInString(s[i:])
		for inDomain(r) && length <= maxDomain {
			i += size
			length++
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		if start < i {
			if domain == "" {
				domain = s[start:i]
			} else {
				domain += s[start:i]
			}
			plain := domain
			if strings.Contains(domain, "..") || !isASCII(domain) {
				plain = manyDots.ReplaceAllString(domain, ".")
			}
			if plain = strings.Trim(plain, "."); plain != "" {
				yield(plain)
			}
		}
		switch {
		case endsList(r):
			return
		case r == '(' && ends != nil && ends[i] > 0:
			i = ends[i]
		default:
			i += size
		}
	}
}

// manyDots matches dots in a row. Some mailers drop those at the end of a domain.
var manyDots = regexp.MustCompile(`[.\x{3002}\x{FF0E}\x{FF61}]{2,}`)

// endsList reports whether r ends an element of a list, or is an @.
func endsList(r rune) bool { return r == '@' || r == ',' || r == ';' }

// maxDomain is the length of the longest domain in the DNS.
const maxDomain = 253

// inDomain reports whether r may be part of a domain.
func inDomain(r rune) bool {
	if r < utf8.RuneSelf {
		return !endsDomain(r)
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N) || strings.ContainsRune("\u3002\uFF0E\uFF61", r)
}

// commentEnds returns what mailers take for comments in s. Each way to read them is a list with the
// index behind the comment that begins at an index, or 0. Comments nest or do not, a backslash takes
// away the meaning of the next character or does not, and a carriage return ends a comment (for
// Python's email.utils) or does not.
func commentEnds(s string) (ways [][]int) {
	closers := []string{")", ")\r"}[:1+min(1, strings.Count(s, "\r"))]
	escapes := []bool{false, true}[:1+min(1, strings.Count(s, `\`))]
	nests := []bool{false, true}[:min(2, strings.Count(s, "("))]
	for _, closers := range closers {
		for _, escapes := range escapes {
			for _, nests := range nests {
				ways = append(ways, endsOfComments(s, closers, escapes, nests))
			}
		}
	}
	return ways
}

func endsOfComments(s, closers string, escapes, nests bool) []int {
	ends := make([]int, len(s))
	var open []int
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && escapes:
			i++
		case c == '(':
			open = append(open, i)
		case strings.IndexByte(closers, c) >= 0 && len(open) > 0:
			if nests {
				ends[open[len(open)-1]] = i + 1
				open = open[:len(open)-1]
				continue
			}
			for _, start := range open {
				ends[start] = i + 1
			}
			open = open[:0]
		}
	}
	return ends
}
