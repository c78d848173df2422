package reference

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The readers of resources.md have the names that findings use.
const (
	Client    = "client"
	Browser   = "browser"
	Server    = "server"
	Literal   = "literal"
	POSIX     = "POSIX"
	Windows   = "Windows"
	Addresses = "addresses"
	asWritten = "text" // the raw string, which a block also compares
)

// A form is a kind of resource in the table of resources.md, 1.
type form int

const (
	nameForm form = iota
	webForm
	fileForm
	windowsForm
	serviceForm
	addressForm
)

// A reading is a resource as one reader reads it, in canonical form. head is the scheme and
// authority of a URL. query begins with the question mark.
type reading struct {
	by                string
	head, path, query text
}

func (r reading) full() text { return concat(r.head, r.path, r.query) }

// A Resource is a text with its readings.
type Resource struct {
	raw    string
	form   form
	allow  []reading
	block  []reading
	lonely bool // a * of an allowance also ends at , ; ? & and white space
}

var schemes = map[form]*regexp.Regexp{
	webForm:     regexp.MustCompile(`^(?i:https?|wss?|ftp):`),
	fileForm:    regexp.MustCompile(`^(?i:file):`),
	addressForm: regexp.MustCompile(`^(?i:mailto|sms|tel):`),
}

// wrapped matches a web or file URL inside < > or after URL: (RFC 3986, appendix C).
var wrapped = regexp.MustCompile(`^(?i)(<(url:\s*)?(https?|wss?|ftp|file):.*>|url:\s*(https?|wss?|ftp|file):.*)$`)

// formOf returns the first form of the table that fits t. A wildcard of a pattern counts as a
// letter.
func formOf(t text) form {
	s := strings.ReplaceAll(show(t), "\uFFFD", "z") // show writes wildcards as U+FFFD
	switch {
	case schemes[webForm].MatchString(s):
		return webForm
	case schemes[fileForm].MatchString(s):
		return fileForm
	case isDrive(t) || hasPrefix(t, `\\`):
		return windowsForm
	}
	if _, ok := schemeOf(t); ok {
		return serviceForm
	}
	if schemes[addressForm].MatchString(s) || isAddressList(s) {
		return addressForm
	}
	return nameForm
}

// Read reads a resource. An error means that the resource is refused (400).
func Read(raw string) (*Resource, error) {
	if err := refused(raw); err != nil {
		return nil, err
	}
	if wrapped.MatchString(raw) {
		return nil, errors.New("the URL is within < > or behind URL: of RFC 3986")
	}
	t := text(raw)
	readings, err := read(t)
	if err != nil {
		return nil, err
	}
	r := &Resource{raw: raw, form: formOf(t), allow: readings}
	r.lonely = r.form == nameForm && stopsEarly(raw)
	r.block = blockReadings(t, r.form, readings)
	return r, nil
}

// stopsEarly reports whether name has no slash, or has a colon before the first slash and no slash
// right after the colon.
func stopsEarly(name string) bool {
	before, _, slash := strings.Cut(name, "/")
	colon := strings.Index(before, ":")
	return !slash || colon >= 0 && colon < len(before)-1
}

// refused returns an error if a text is not a resource in any form.
func refused(raw string) error {
	if raw == "" || !utf8.ValidString(raw) {
		return errors.New("a resource is a text in UTF-8")
	}
	if strings.TrimSpace(raw) != raw {
		return errors.New("a resource has no surrounding white space")
	}
	last := rune(0)
	for _, r := range raw {
		if unicode.IsControl(r) || invisible(r) && (!joins(r) || last <= 127) {
			return errors.New("a resource has no control, invisible or bidirectional characters")
		}
		last = r
	}
	return nil
}

func between(r rune, ranges ...rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if r >= ranges[i] && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

func invisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || between(r, 0x34F, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180F,
		0x3164, 0x3164, 0xFE00, 0xFE0F, 0xFFA0, 0xFFA0, 0xE0100, 0xE01EF)
}

// joins reports whether r is an invisible character: a joiner or a variation selector.
func joins(r rune) bool {
	return between(r, 0x200C, 0x200D, 0x180B, 0x180D, 0x180F, 0x180F, 0xFE00, 0xFE0F, 0xE0100, 0xE01EF)
}

// read returns the readings of t for allowances.
func read(t text) ([]reading, error) {
	var out []reading
	var err error
	switch formOf(t) {
	case webForm:
		out, err = readWeb(t)
	case fileForm:
		out, err = readFile(t)
	case serviceForm:
		scheme, _ := schemeOf(t)
		var p parts
		if p, err = parseService(t, scheme); err == nil {
			out = urlReadings([]parts{p}, false)
		}
	case windowsForm:
		out = []reading{{by: Windows, path: letters(windows(t))}}
	case addressForm:
		for _, a := range addressesOf(t) {
			out = append(out, reading{by: Addresses, path: a})
		}
	default:
		out = readName(t)
	}
	return once(out), err
}

func once(all []reading) []reading {
	var out []reading
	for _, r := range all {
		if !slices.ContainsFunc(out, func(o reading) bool {
			return o.by == r.by && slices.Equal(o.head, r.head) && slices.Equal(o.path, r.path) && slices.Equal(o.query, r.query)
		}) {
			out = append(out, r)
		}
	}
	return out
}

func readWeb(t text) ([]reading, error) {
	p, err := parseWeb(t)
	if err != nil {
		return nil, err
	}
	variants := []parts{p}
	if s := slashed(t); !slices.Equal(s, t) {
		if p, err = parseWeb(s); err != nil {
			return nil, err
		}
		variants = append(variants, p)
	}
	return urlReadings(variants, true), nil
}

// urlReadings returns the readings of a URL by client, browser, server and literal reader. In the
// last variant, slashes replace the backslashes.
func urlReadings(variants []parts, web bool) []reading {
	var out []reading
	add := func(by string, p parts, path text) {
		for _, head := range p.heads {
			out = append(out, reading{by: by, head: head, path: path, query: canon(p.query)})
		}
	}
	serve := func(p parts, path text) {
		for _, served := range serverPaths(path, !web, resolveServed) {
			add(Server, p, served)
		}
	}
	for i, p := range variants {
		sent := resolveURL(p.path, literalDots)
		add(Client, p, canon(sent))
		if web && barePercent(p.path) {
			again := resolveURL(escapedAgain(p.path), literalDots)
			add(Client, p, canon(again))
			serve(p, again)
		}
		add(Literal, p, canon(p.path))
		serve(p, sent)
		serve(p, p.path)
		if !web {
			serve(p, forward(p.path))
		}
		serve(p, withoutDotParameters(p.path))
		if i == len(variants)-1 {
			sent = resolveURL(p.path, escapedDots)
			add(Browser, p, canon(sent))
			serve(p, sent)
		}
	}
	return out
}

// barePercent reports whether a % of a path begins no escape.
func barePercent(path text) bool {
	found := false
	eachEscape(path, func(r rune, esc bool) { found = found || r == '%' && !esc })
	return found
}

// escapedAgain returns a path with every % as %25, as requests and urllib3 send it.
func escapedAgain(path text) text {
	var out text
	for _, r := range path {
		if out = append(out, r); r == '%' {
			out = append(out, '2', '5')
		}
	}
	return out
}

func resolveServed(t text) text { return resolveURL(mergeSlashes(t), literalDots) }

// serverPaths returns the path decoded once. If deep is set, it also returns the path decoded until
// no escape is left. Each result has two versions, because a backslash is a slash for some servers.
func serverPaths(path text, deep bool, resolve func(text) text) []text {
	decoded := []text{decodeOnce(path)}
	if deep {
		decoded = addText(decoded, decodeAll(path))
	}
	var out []text
	for _, d := range decoded {
		for _, s := range []text{d, forward(d)} {
			out = addText(out, letters(resolve(s)))
			out = addText(out, letters(resolve(withoutDotParameters(s))))
		}
	}
	return out
}

func readName(t text) []reading {
	out := []reading{{by: POSIX, path: letters(posix(t))}}
	if slices.Contains(t, '\\') || hasPrefix(t, "//") {
		out = append(out, reading{by: Windows, path: letters(windows(t))})
	}
	if hasEscape(t) {
		out = append(out, serveName(t)...)
	}
	return out
}

// serveName returns the server's readings of a name, and of the name as POSIX reads it.
func serveName(t text) []reading {
	var out []reading
	for _, src := range []text{t, posix(t)} {
		for _, p := range serverPaths(src, true, func(t text) text { return posix(mergeSlashes(t)) }) {
			out = append(out, reading{by: Server, path: p})
		}
	}
	return out
}
