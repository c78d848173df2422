package oracles

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// mutator writes a resource in other ways. Some program reads many of its spellings as the same
// resource. Some spellings mean something else to every program. The programs decide which.
type mutator struct{ *rand.Rand }

// parts has the parts of a resource, for mutation. A resource that is not a URL is only a path.
type parts struct{ scheme, sep, authority, path string }

func cut(resource string) parts {
	scheme, rest, ok := strings.Cut(resource, "://")
	if !ok {
		return parts{path: resource}
	}
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		i = len(rest)
	}
	return parts{scheme, "://", rest[:i], rest[i:]}
}

func (p *parts) String() string { return p.scheme + p.sep + p.authority + p.path }

// operation is a mutation. It changes nothing in a resource that it does not fit.
type operation func(m *mutator, p *parts)

// operations are the mutations of each form.
var operations = map[form][]operation{
	web:     {slash, slash, climb, climb, climb, letter, letter, end, host, host, port, user, scheme, separator, intrude, overlong, prefix, junk},
	service: {slash, climb, climb, letter, letter, end, host, port, user, scheme, intrude, overlong, junk},
	file:    {slash, climb, climb, letter, letter, end, fileHost, scheme, separator, intrude, junk},
	name:    {slash, climb, climb, climb, letter, letter, end, scheme, intrude, overlong, prefix, junk},
	windows: {windowsSlash, windowsSlash, windowsPrefix, foldedLetter, windowsEnd, climb, intrude},
	address: {list, list, list, letter, foldedLetter, mailScheme, dress, intrude, mailEnd},
}

// mutate applies one to four mutations.
func (m *mutator) mutate(f form, resource string) string {
	p := cut(resource)
	for range 1 + m.IntN(4) {
		operations[f][m.IntN(len(operations[f]))](m, &p)
	}
	return p.String()
}

func (m *mutator) pick(from ...string) string { return from[m.IntN(len(from))] }

// replaceOne replaces one of the separators in s by the text in with.
func (m *mutator) replaceOne(s, separator, with string) string {
	n := strings.Count(s, separator)
	if n == 0 {
		return s
	}
	at := 0
	for range m.IntN(n) {
		at += strings.Index(s[at:], separator) + len(separator)
	}
	at += strings.Index(s[at:], separator)
	return s[:at] + with + s[at+len(separator):]
}

func slash(m *mutator, p *parts) {
	p.path = m.replaceOne(p.path, "/", m.pick("//", "///", "/./", "/%2e/", "/%2E/", "%2f", "%2F", `\`, "%5c", "%5C", "／", `/\`,
		`\/`, "%252f", "/;/", "/;x=1/", "%c0%af", "∕", "/.;/", "/.%3b/", "%u002f", "/%20/../", "%25%32%66", "//./"))
}

func climb(m *mutator, p *parts) {
	seg := m.pick("x", "x", "a.b", "%78", "..x", "v1", "x;y", "é", "x y", `a\b`, "...")
	up := m.pick("/S/../", "/S/%2e%2e/", "/S/.%2e/", "/S/%2E./", "/S/..;/", "/S/..;a=b/", "/S/..%3b/", "/S/..%2f", "/S%2f..%2f", "/S%2f../",
		`/S\..\`, "/S%5c..%5c", `/S/..\`, "/S/T/../../", "/../", "/%2e%2e/", "/S/%252e%252e/", "/S/．．/", "/S/%c0%ae%c0%ae/", "/S/%2e/../../",
		"/S/%2e/../", "/%2e/../", "/S/./../", "/S//../", "/S//../../", `/S\T\U/../../../`, `/S\T/../../`, `/S\T/../`, "/S/‥/", "/S/.././", "/S/..//",
		"/S/%2e%2e%2f", "/S/T/%2e%2e/../", "/S/T/../%2e%2e/", "/S/%2e%2e/../S/", "/S/T/..%2f../", "/./S/../")
	p.path = m.replaceOne(p.path, "/", strings.NewReplacer("S", seg, "T", "t", "U", "u").Replace(up))
}

// letter writes one letter of the path in another way.
func letter(m *mutator, p *parts) { p.path = m.rewrite(p.path) }

func (m *mutator) rewrite(s string) string {
	if s == "" {
		return s
	}
	i := m.IntN(len(s))
	c := s[i]
	if c >= utf8.RuneSelf || c == '%' {
		return s
	}
	wide := string(rune(c))
	if c > ' ' && c < 0x7f {
		wide = string(rune(c) + 0xfee0)
	}
	return s[:i] + m.pick(fmt.Sprintf("%%%02x", c), fmt.Sprintf("%%%02X", c), fmt.Sprintf("%%25%02x", c), fmt.Sprintf("%%2525%02x", c),
		wide, fmt.Sprintf("%%u00%02x", c), fmt.Sprintf("%%%%%02x", c)) + s[i+1:]
}

func foldedLetter(m *mutator, p *parts) { p.path = m.flip(p.path) }

// flip changes the case of one letter or of all letters.
func (m *mutator) flip(s string) string {
	if s == "" || m.IntN(4) == 0 {
		return strings.ToUpper(s)
	}
	i := m.IntN(len(s))
	return s[:i] + strings.ToUpper(s[i:i+1]) + s[i+1:]
}

func end(m *mutator, p *parts) {
	p.path += m.pick("/", "/.", "//", "?", "?x=1", "?x=/../y", "?/../../x", "#", "#x", "#/../x", ";x=1", ";", "/;x", "%3fx", "%23x", "%20", "%00", "%0a",
		".", "/..;/", "/%2e", "/x/..", "%2f", `\`, "?a#b", "/./", "/x/%2e%2e", "?%00", "/..", "/x%2f..", "?a=b;c", ";/..", "?x=%", "%")
}

func scheme(m *mutator, p *parts) {
	if p.scheme != "" {
		p.scheme = m.flip(p.scheme)
	} else if i := strings.IndexByte(p.path, ':'); i > 0 {
		p.path = m.flip(p.path[:i]) + p.path[i:]
	}
}

func separator(m *mutator, p *parts) {
	p.sep = m.pick(":", ":/", ":///", ":////", `:\\`, `:/\`, `:\/`, `:\`, "://", ":%2f/", " ://", ": //", ":\t//", "：//")
}

// intrude inserts a character that some programs ignore.
func intrude(m *mutator, p *parts) {
	s := p.String()
	at := m.IntN(len(s) + 1)
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	*p = parts{path: s[:at] + m.pick("\t", "\n", "\r", "\x00", "\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff", "\u034f", "\ufe0f", "\u202e", " ", "%09",
		"%0d%0a", "%00", "\u3000", "\u0301", "\u2028", "\u00a0", "\x7f", "%c2%ad", "%e2%80%8b") + s[at:]}
}

func prefix(m *mutator, p *parts) {
	p.path, p.scheme = m.pick("", "", "", "./", "/", " ")+p.path, m.pick(" ", "\t", "", "", "url:", "view-source:", "<", "//")+p.scheme
}

// overlong writes a dot or a slash as bytes that only broken decoders understand.
func overlong(m *mutator, p *parts) {
	p.path = m.replaceOne(p.path, m.pick("/", ".", "e"), m.pick("%c0%af", "%e0%80%af", "%c0%ae", "%f0%80%80%af", "%ff", "%c1%a5", "%ed%a0%80"))
}

// junk makes the path go far down and up again, or start with many slashes.
func junk(m *mutator, p *parts) {
	n := 1 + m.IntN(40)
	p.path = m.replaceOne(p.path, "/", m.pick(
		strings.Repeat("/x", n)+strings.Repeat("/..", n)+"/",
		strings.Repeat("/x", n)+strings.Repeat("/%2e%2e", n)+"/",
		strings.Repeat("/", n+1), strings.Repeat("/.", n)+"/", strings.Repeat("/..", n)+"/", "/"+strings.Repeat("A", 20*n)+"/../"))
}
