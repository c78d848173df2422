package reference

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// parts has the parts of a URL. head is the scheme and the authority, in canonical form. path and
// query are unchanged, and the query begins with its question mark. There are two heads if the two
// mappings of UTS 46 differ.
type parts struct {
	heads       []text
	path, query text
}

// cutQuery cuts a text at its first ?. It drops the fragment. In a pattern, ? is a wildcard and
// does not begin a query.
func cutQuery(t text) (before, query text) {
	if i := slices.Index(t, '#'); i >= 0 {
		t = t[:i]
	}
	if i := slices.Index(t, '?'); i >= 0 {
		return t[:i], t[i:]
	}
	return t, nil
}

// slashed replaces the backslashes before the query by slashes. The query stays unchanged.
func slashed(t text) text {
	end := indexAny(t, "?#")
	if end < 0 {
		end = len(t)
	}
	return concat(forward(t[:end]), t[end:])
}

// cutAuthority cuts the text after // at the end of its authority.
func cutAuthority(t text) (authority, rest text) {
	i := indexAny(t, "/?#")
	if i < 0 {
		return t, nil
	}
	return t[:i], t[i:]
}

// withoutUser drops the user info of an authority.
func withoutUser(authority text) text {
	for i := len(authority) - 1; i >= 0; i-- {
		if authority[i] == '@' {
			return authority[i+1:]
		}
	}
	return authority
}

// parseWeb parses a web URL. It returns an error if the URL has no single meaning.
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
		if err == nil && strings.HasSuffix(show(h), ":0") {
			err = errors.New("the port is 0")
		}
		if err != nil {
			return parts{}, err
		}
		p.heads = addText(p.heads, concat(eachRun(t[:colon], strings.ToLower), text("://"), h))
	}
	return p, nil
}

// webPath returns an error if a path has no single meaning.
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

// endsWithDoubleStar reports whether the authority of a pattern ends with **. This wildcard may
// then match the path, too.
func endsWithDoubleStar(host text) bool {
	if len(host) == 0 {
		return false
	}
	last := host[len(host)-1]
	return isWild(last) && last&doubleStar != 0
}

// escapedControl reports whether a path has an escaped control character.
func escapedControl(path text) bool {
	found := false
	eachEscape(path, func(r rune, esc bool) {
		found = found || esc && isPlain(r) && unicode.IsControl(r)
	})
	return found
}

// maxHosts is the greatest number of hosts in a list.
const maxHosts = 64

// parseService parses a URL that is neither a web nor a file URL. It returns a head for the
// authority. If the authority is a list with commas, it also returns a head for each host. It
// refuses only escaped control characters and too many hosts.
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
		if hosts := hostsOf(name, show(lower)); len(hosts) > maxHosts {
			return parts{}, errors.New("the URL lists too many hosts")
		} else if !slices.Contains(name, ';') {
			for _, h := range hosts {
				p.heads = addText(p.heads, concat(lower, text("://"), h))
			}
		}
	}
	return p, nil
}

// hostsOf returns the entries of an authority that are a host or host:port.
func hostsOf(authority text, scheme string) []text {
	var out []text
	for _, entry := range cutWhere(authority, func(r rune) bool { return r == ',' || r == ';' }) {
		if h, err := hostPort(entry, portScheme(scheme), false); err == nil {
			out = append(out, h)
		}
	}
	return out
}

// otherHosts returns further readings of a URL for a block. One reading drops the zone of an IPv6
// address. For a service it adds each host of a list, with and without its zone. If an entry has
// text after its port, it adds the entry cut after the host and the entry cut after the port.
func otherHosts(r reading, f form) []reading {
	i := slices.Index(r.head, '/')
	if f != webForm && f != serviceForm || i < 0 {
		return nil
	}
	scheme, authority := show(r.head[:i-1]), r.head[i+2:]
	candidates := []text{withoutZone(authority)}
	if f == serviceForm {
		for _, entry := range cutWhere(authority, func(r rune) bool { return r == ',' || r == ';' }) {
			candidates = append(candidates, entry, withoutZone(entry))
			if host, port := hostEnds(entry); port < len(entry) {
				candidates = append(candidates, entry[:host], entry[:port])
			}
		}
	}
	var out []reading
	for _, c := range candidates {
		if h, err := hostPort(c, portScheme(scheme), false); err == nil {
			out = append(out, reading{by: r.by, head: concat(r.head[:i+2], h), path: r.path, query: r.query})
		}
	}
	return out
}

// withoutZone drops the zone of an IPv6 address in brackets.
func withoutZone(host text) text {
	zone, end := slices.Index(host, escaped|'%'), slices.Index(host, ']')
	if len(host) == 0 || host[0] != '[' || zone < 0 || end < zone {
		return host
	}
	return concat(host[:zone], host[end:])
}

// hostEnds returns the index at which the host of an entry ends, and the index at which its port
// ends.
func hostEnds(entry text) (host, port int) {
	host = slices.Index(entry, ']') + 1
	for host < len(entry) && (entry[host] == '.' || entry[host] > 127 && isPlain(entry[host]) || !notInLabel(entry[host])) {
		host++
	}
	if port = host; port < len(entry) && entry[port] == ':' {
		for port++; port < len(entry) && entry[port] >= '0' && entry[port] <= '9'; {
			port++
		}
	}
	return host, port
}

var errControl = errors.New("the path holds an escaped control character")

// portScheme returns the scheme whose default port applies to scheme.
func portScheme(scheme string) string {
	return strings.TrimPrefix(strings.TrimPrefix(scheme, "jdbc:"), "git+")
}

// serviceAuthority brings each host:port of an authority into canonical form. Any other entry stays
// unchanged.
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

// schemeOf returns the text before :// if it is a scheme or a chain of schemes. A wildcard counts
// as a letter.
func schemeOf(t text) (text, bool) {
	for i, r := range t {
		switch {
		case r == ':' && i > 0 && hasPrefix(t[i:], "://"):
			return t[:i], true
		case isWild(r) || isASCIILetter(r):
		case i == 0 || r != ':' && r != '+' && r != '-' && r != '.' && (r < '0' || r > '9'):
			return nil, false
		case t[i-1] == ':':
			return nil, false // a scheme must begin with a letter
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
