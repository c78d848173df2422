package reference

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// parts is a URL cut into what the readers look at. head holds the scheme and
// the authority and is in the form of comparison; path and query are as they
// came, the query with its question mark. There are two heads where UTS 46
// differs.
type parts struct {
	heads       []text
	path, query text
}

// cutQuery cuts a text at its first ? and drops what follows #. In a pattern
// ? is a wildcard and begins no query.
func cutQuery(t text) (before, query text) {
	if i := slices.Index(t, '#'); i >= 0 {
		t = t[:i]
	}
	if i := slices.Index(t, '?'); i >= 0 {
		return t[:i], t[i:]
	}
	return t, nil
}

// slashed turns the backslashes before the query into slashes.
func slashed(t text) text {
	end := indexAny(t, "?#")
	if end < 0 {
		end = len(t)
	}
	return concat(forward(t[:end]), t[end:])
}

// cutAuthority cuts what follows // into authority and the rest.
func cutAuthority(t text) (authority, rest text) {
	i := indexAny(t, "/?#")
	if i < 0 {
		return t, nil
	}
	return t[:i], t[i:]
}

// withoutUser drops the user info.
func withoutUser(authority text) text {
	for i := len(authority) - 1; i >= 0; i-- {
		if authority[i] == '@' {
			return authority[i+1:]
		}
	}
	return authority
}

// parseWeb reads a web URL, or says why it has no single meaning.
func parseWeb(t text) (parts, error) {
	colon := slices.Index(t, ':')
	scheme := strings.ToLower(show(t[:colon]))
	rest := t[colon+1:]
	if !hasPrefix(rest, "//") || len(rest) > 2 && (rest[2] == '/' || rest[2] == '\\') {
		return parts{}, fmt.Errorf("the scheme %s is not followed by exactly //", scheme)
	}
	authority, rest := cutAuthority(rest[2:])
	host := withoutUser(authority)
	if slices.Contains(host, '\\') {
		return parts{}, errors.New("the host holds a backslash")
	}
	if hasEscape(host) && (host[0] != '[' || hasEscape(host[max(0, slices.Index(host, ']')):])) {
		return parts{}, errors.New("the host holds an escape")
	}
	path, query := cutQuery(rest)
	if err := webPath(path); err != nil {
		return parts{}, err
	}
	if len(path) == 0 && !endsWithDoubleStar(host) {
		path = text("/")
	}
	p := parts{path: path, query: query}
	for _, transitional := range []bool{true, false} {
		h, err := hostPort(host, scheme, transitional)
		if err != nil {
			return parts{}, err
		}
		p.heads = addText(p.heads, concat(eachRun(t[:colon], strings.ToLower), text("://"), h))
	}
	return p, nil
}

// webPath refuses a path without a single meaning.
func webPath(path text) error {
	if escapedControl(path) {
		return errControl
	}
	decoded := decodeOnce(path)
	if slices.ContainsFunc(decoded, func(r rune) bool { return r&rawByte != 0 }) {
		return errors.New("the path holds an escape that is no UTF-8")
	}
	if hasEscape(decoded) {
		return errors.New("the path holds an escape of an escape")
	}
	return nil
}

// endsWithDoubleStar reports a pattern whose path may be within the ** that
// ends its authority.
func endsWithDoubleStar(host text) bool {
	if len(host) == 0 {
		return false
	}
	last := host[len(host)-1]
	return isWild(last) && last&doubleStar != 0
}

// escapedControl reports an escape of a control character.
func escapedControl(path text) bool {
	found := false
	eachEscape(path, func(r rune, esc bool) {
		found = found || esc && isPlain(r) && unicode.IsControl(r)
	})
	return found
}

// parseService reads any other URL. Nothing is refused but escaped controls.
func parseService(t text, scheme text) (parts, error) {
	authority, rest := cutAuthority(t[len(scheme)+3:])
	path, query := cutQuery(rest)
	if escapedControl(path) {
		return parts{}, errControl
	}
	p := parts{path: path, query: query}
	lower := eachRun(scheme, strings.ToLower)
	for _, transitional := range []bool{true, false} {
		name := serviceAuthority(canon(withoutUser(authority)), portScheme(show(lower)), transitional)
		p.heads = addText(p.heads, concat(lower, text("://"), name))
	}
	return p, nil
}

var errControl = errors.New("the path holds an escaped control character")

// portScheme is the scheme whose default port counts.
func portScheme(scheme string) string {
	return strings.TrimPrefix(strings.TrimPrefix(scheme, "jdbc:"), "git+")
}

// serviceAuthority reads each host:port of an authority; what is none stays.
func serviceAuthority(authority text, scheme string, transitional bool) text {
	var out, piece text
	flush := func() {
		if h, err := hostPort(piece, scheme, transitional); err == nil {
			piece = h
		}
		out, piece = append(out, piece...), nil
	}
	for _, r := range authority {
		if r == ',' || r == ';' {
			flush()
			out = append(out, r)
			continue
		}
		piece = append(piece, r)
	}
	flush()
	return out
}

// schemeOf returns the scheme or chain of schemes before ://. Wildcards count
// as letters.
func schemeOf(t text) (text, bool) {
	for i, r := range t {
		switch {
		case r == ':' && i > 0 && hasPrefix(t[i:], "://"):
			return t[:i], true
		case isWild(r) || isASCIILetter(r):
		case i == 0 || r != ':' && r != '+' && r != '-' && r != '.' && (r < '0' || r > '9'):
			return nil, false
		case t[i-1] == ':':
			return nil, false // a scheme begins with a letter
		}
	}
	return nil, false
}

func addText(all []text, t text) []text {
	if slices.ContainsFunc(all, func(o text) bool { return slices.Equal(o, t) }) {
		return all
	}
	return append(all, t)
}
