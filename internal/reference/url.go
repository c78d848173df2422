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

// maxHosts bounds a list of hosts.
const maxHosts = 64

// parseService reads any other URL, with a head for its authority and, where
// commas list hosts, one for each of them. Nothing is refused but escaped
// controls and too many hosts.
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

// hostsOf returns the entries of an authority that are a host, with or without
// a port.
func hostsOf(authority text, scheme string) []text {
	var out []text
	for _, entry := range cutWhere(authority, func(r rune) bool { return r == ',' || r == ';' }) {
		if h, err := hostPort(entry, portScheme(scheme), false); err == nil {
			out = append(out, h)
		}
	}
	return out
}

// otherHosts returns further readings of a URL for a block. One reading has no zone in its
// address. A service has more readings: one for each host of a list, with and without its zone.
// If an entry of the list goes on after its port, one reading ends after the host and one after
// the port.
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

// withoutZone drops the zone of an address in brackets.
func withoutZone(host text) text {
	zone, end := slices.Index(host, escaped|'%'), slices.Index(host, ']')
	if len(host) == 0 || host[0] != '[' || zone < 0 || end < zone {
		return host
	}
	return concat(host[:zone], host[end:])
}

// hostEnds returns where the host at the start of an entry ends, without and
// with its port.
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

// portScheme is the scheme whose default port counts.
func portScheme(scheme string) string {
	return strings.TrimPrefix(strings.TrimPrefix(scheme, "jdbc:"), "git+")
}

// serviceAuthority reads each host:port of an authority. Any other entry stays.
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
