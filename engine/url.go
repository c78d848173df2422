package engine

import "strings"

// location is a resource taken apart; its String is the normal form.
//
// Three kinds are told apart, as a browser would:
//
//	scheme://host/path?query#fragment   hierarchical; http, https, ws, wss, ftp
//	                                    and file with any number of slashes,
//	                                    forward or backward, others with two
//	scheme:path?query#fragment          opaque: repo:main, urn:…, mailto:…, c:/x
//	path?query#fragment                 no scheme
//
// An opaque path that is itself a URL (jdbc:postgres://…) is taken apart too.
type location struct {
	prefix       string // of nested URLs, such as "jdbc:"
	scheme       string
	hierarchical bool
	host         string // with the port
	path         string
	query        string // with the question mark
	fragment     string // with the number sign
	climbs       int    // leading ".." of a relative path
	// unresolved is the canonical path before its dot segments are resolved,
	// where it has encoded slashes: see slashed.
	unresolved string
	// literal is the canonical path before its dot segments are resolved, with its
	// backslashes encoded, empty where they are slashes to everybody or it has
	// none after its start: see keepBackslashes and unbrowsed.
	literal string
}

func (l *location) String() string {
	var b strings.Builder
	b.Grow(len(l.prefix) + len(l.scheme) + len(l.host) + len(l.path) + len(l.query) + len(l.fragment) + 3)
	b.WriteString(l.prefix)
	if l.scheme != "" {
		b.WriteString(l.scheme)
		b.WriteByte(':')
	}
	if l.hierarchical {
		b.WriteString("//")
		b.WriteString(l.host)
	}
	b.WriteString(l.path)
	b.WriteString(l.query)
	b.WriteString(l.fragment)
	return b.String()
}

const maxNesting = 4

// parseLocation reads raw, which has passed checkText.
func parseLocation(raw string) (location, *ResourceError) {
	var prefix strings.Builder
	for range maxNesting {
		scheme, rest, ok := cutScheme(raw)
		if !ok || !nests(scheme, rest) {
			l, err := parseSimple(scheme, rest)
			l.prefix = prefix.String()
			return l, err
		}
		prefix.WriteString(scheme)
		prefix.WriteByte(':')
		raw = rest
	}
	return location{}, &ResourceError{"it nests too many URLs"}
}

// cutScheme cuts the scheme off s and returns it in lower case; where there is
// none, rest is s.
func cutScheme(s string) (scheme, rest string, ok bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case isAlpha(c), i > 0 && (isDigit(c) || c == '+' || c == '-' || c == '.'):
		case c == ':' && i > 0:
			return asciiLower(s[:i]), s[i+1:], true
		default:
			return "", s, false
		}
	}
	return "", s, false
}

// nests reports whether rest, the part of a URL after an opaque scheme, is a
// URL of its own.
func nests(scheme, rest string) bool {
	if isSpecial(scheme) || startsWithSlash(rest) {
		return false
	}
	for {
		inner, after, ok := cutScheme(rest)
		if !ok {
			return false
		}
		if isSpecial(inner) || slashes(after) >= 2 {
			return true
		}
		rest = after
	}
}

func parseSimple(scheme, rest string) (location, *ResourceError) {
	switch {
	case scheme == "file":
		return parseFile(rest)
	case isSpecial(scheme):
		return parseHierarchical(scheme, rest[slashes(rest):])
	case scheme != "" && slashes(rest) >= 2:
		if rest[0] == '\\' || rest[1] == '\\' {
			return location{}, &ResourceError{"it has backslashes before its host"}
		}
		return parseHierarchical(scheme, rest[2:])
	}
	return parsePath(scheme, rest)
}

func parseHierarchical(scheme, s string) (location, *ResourceError) {
	l := location{scheme: scheme, hierarchical: true}
	end := strings.IndexAny(s, `/\?#`)
	if end < 0 {
		end = len(s)
	}
	authority, rest := s[:end], s[end:]
	if strings.HasPrefix(rest, `\`) && (!isSpecial(scheme) || hidesHost(rest)) {
		return l, &ResourceError{"it has a backslash beside its host"}
	}
	var err *ResourceError
	if authority != "" || isSpecial(scheme) {
		if l.host, err = normalAuthority(authority, scheme); err != nil {
			return l, err
		}
	}
	if !startsWithSlash(rest) {
		rest = "/" + rest
	}
	return l, l.setRest(rest)
}

// hidesHost reports whether readers that do not end a host at a backslash
// would find another one in rest.
func hidesHost(rest string) bool {
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return strings.IndexByte(rest, '@') >= 0
}

func parseFile(rest string) (location, *ResourceError) {
	l := location{scheme: "file", hierarchical: true}
	if slashes(rest) < 2 {
		return l, l.setRest("/" + rest)
	}
	rest = rest[2:]
	end := strings.IndexAny(rest, `/\?#`)
	if end < 0 {
		end = len(rest)
	}
	host := rest[:end]
	if host == "" || isDrive(host) {
		return l, l.setRest("/" + rest)
	}
	if strings.IndexByte(host, '@') >= 0 {
		return l, &ResourceError{"its host has a character that no host can have"}
	}
	var err *ResourceError
	if l.host, err = normalHost(host, true); err != nil {
		return l, err
	}
	if l.host == "localhost" {
		l.host = ""
	}
	return l, l.setRest("/" + rest[end:])
}

func parsePath(scheme, rest string) (location, *ResourceError) {
	l := location{scheme: scheme}
	if scheme == "" && slashes(rest) >= 2 {
		return l, &ResourceError{"it starts with two slashes: a host or a path"}
	}
	if err := l.setRest(rest); err != nil {
		return l, err
	}
	if hasDotSegment(l.query) || hasDotSegment(l.fragment) {
		return l, &ResourceError{"it has dot segments after ? or #"}
	}
	return l, nil
}

// setRest sets path, query and fragment from what follows scheme and host.
func (l *location) setRest(rest string) (err *ResourceError) {
	rest, fragment, _ := strings.Cut(rest, "#")
	path, query, _ := strings.Cut(rest, "?")
	if err = l.keepBackslashes(path); err != nil {
		return err
	}
	if path, err = canonical(strings.ReplaceAll(path, `\`, "/"), encodePath); err != nil {
		return err
	}
	if !l.hierarchical {
		if path, err = lowerDomains(path); err != nil {
			return err
		}
	}
	if decodeSlashes(path) != path {
		l.unresolved = path
	}
	if l.literal == "" && strings.Contains(path, "%5C") && strings.Contains(path, "%2F") {
		l.literal = path
	}
	if err = l.setPath(path); err != nil {
		return err
	}
	if query != "" {
		set := encodeQuery
		if isSpecial(l.scheme) {
			set = encodeSpecialQuery
		}
		if query, err = canonical(query, set); err != nil {
			return err
		}
		l.query = "?" + query
	}
	if fragment != "" {
		if fragment, err = canonical(fragment, encodeFragment); err != nil {
			return err
		}
		l.fragment = "#" + fragment
	}
	return nil
}

// keepBackslashes sets the literal path of a URL. Browsers read a backslash as a
// slash, curl and the libraries of most languages encode it: to them /a/..\b is
// in /a. In file URLs and in what is no URL it is Windows's slash.
func (l *location) keepBackslashes(path string) *ResourceError {
	if !l.hierarchical || !isSpecial(l.scheme) || l.scheme == "file" {
		return nil
	}
	if rest, ok := strings.CutPrefix(path, `\`); ok {
		path = "/" + rest
	}
	if strings.IndexByte(path, '\\') < 0 {
		return nil
	}
	path, err := canonical(strings.ReplaceAll(path, `\`, "%5C"), encodePath)
	l.literal = path
	return err
}

// unbrowsed returns the readings of l, besides itself, whose backslashes, as
// they are or encoded, are no slashes: with encoded slashes as they are, and read
// as slashes, before dot segments are resolved. /a%2F..%5Cb is in /a to a server
// that decodes it and takes no backslash for a slash.
func (l location) unbrowsed() ([]location, *ResourceError) {
	if l.literal == "" {
		return nil, nil
	}
	kept, decoded := l, l
	if err := kept.setPath(l.literal); err != nil {
		return nil, err
	}
	err := decoded.setPath(strings.ReplaceAll(l.literal, "%2F", "/"))
	return []location{kept, decoded}, err
}

// slashed returns l with encoded slashes and backslashes of the path read as
// slashes, before dot segments are resolved: a server that decodes first reads
// /a/b%2Fc/../../d as /a/d.
func (l location) slashed() (location, *ResourceError) {
	if l.unresolved == "" {
		return l, nil
	}
	err := l.setPath(decodeSlashes(l.unresolved))
	return l, err
}

// slashes returns the number of slashes, forward or backward, that s starts with.
func slashes(s string) int {
	return len(s) - len(strings.TrimLeft(s, `/\`))
}

func startsWithSlash(s string) bool { return s != "" && (s[0] == '/' || s[0] == '\\') }

// isDrive reports whether s is a Windows drive, which browsers know in file
// URLs.
func isDrive(s string) bool {
	return len(s) == 2 && isAlpha(s[0]) && (s[1] == ':' || s[1] == '|')
}
