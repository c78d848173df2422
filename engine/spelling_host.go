package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"golang.org/x/text/unicode/norm"
)

// driveAsPath returns the rest of a file URL, and where its host ends, with a
// Windows drive as part of the path and in its normal form.
func driveAsPath(rest []unit, end int) ([]unit, int) {
	if host, literal := literalPrefix(rest[:end]); literal && isDrive(host) {
		rest, end = slices.Concat(literalUnits("/"), rest), 0
	}
	path := rest[end:]
	if len(path) < 3 || len(path) > 3 && !path[3].is('/') {
		return rest, end
	}
	if drive, literal := literalPrefix(path[1:3]); literal && isDrive(drive) {
		drive = asciiLower(drive[:1]) + ":"
		rest = slices.Concat(rest[:end+1], literalUnits(drive), path[3:])
	}
	return rest, end
}

// authority adds the spellings of scheme://host and path, where a ** in host
// stands for part of the host only.
func (s *speller) authority(scheme, host, path []unit) {
	host = slices.Clone(host)
	for i, u := range host {
		if u.isSuper() {
			host[i] = wildcard("*")
		}
	}
	if len(path) == 0 || path[0].is('?') || path[0].is('#') {
		path = append([]unit{{lit: '/'}}, path...)
	}
	name, literal := literalPrefix(scheme)
	if literal && isSpecial(name) && name != "file" && len(host) == 0 && !path[0].isSuper() {
		s.fail("has an empty host")
		return
	}
	paths := s.paths(path, name)
	if slices.ContainsFunc(host, func(u unit) bool { return u.is('@') }) {
		s.fail("has user info, which no normal form has")
	}
	host, port := splitPort(host)
	if host = s.host(host, name); s.problem != "" {
		return
	}
	for _, path := range paths {
		s.ports(scheme, host, port, path)
	}
}

// ports adds scheme://host:port path and, where the port may be the default
// one of the scheme, the same without it.
func (s *speller) ports(scheme, host, port, path []unit) {
	if text, literal := literalPrefix(port); literal {
		port = literalUnits(canonicalPort(text))
	}
	if literal, _ := literalPrefix(port); strings.Trim(literal, "0123456789") != "" {
		s.fail("has a port that is not a number")
		return
	}
	if len(port) > 0 {
		s.add(slices.Concat(scheme, literalUnits("://"), host, literalUnits(":"), port, path))
	}
	name, literal := literalPrefix(scheme)
	if len(port) == 0 || literal && mayBe(port, "", defaultPorts[name]) {
		s.add(slices.Concat(scheme, literalUnits("://"), host, path))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(defaultPorts)) {
		if !literal && mayBe(scheme, name) && mayBe(port, "", defaultPorts[name]) {
			s.add(slices.Concat(literalUnits(name+"://"), host, path))
		}
	}
}

// canonicalPort returns a port without leading zeros.
func canonicalPort(port string) string {
	if port == "" {
		return ""
	}
	return strings.TrimLeft(port[:len(port)-1], "0") + port[len(port)-1:]
}

// mayBe reports whether the pattern units matches one of texts.
func mayBe(units []unit, texts ...string) bool {
	g, err := glob.Compile(render(units), '/')
	return err == nil && slices.ContainsFunc(texts, g.Match)
}

// splitPort splits host:port; port is empty where there is none.
func splitPort(units []unit) (host, port []unit) {
	for i := len(units) - 1; i >= 0 && !units[i].is(']'); i-- {
		if units[i].is(':') {
			return units[:i], units[i+1:]
		}
	}
	return units, nil
}

// host returns the normal form of a pattern's host.
func (s *speller) host(host []unit, scheme string) []unit {
	if text, literal := literalPrefix(host); literal {
		return s.literalHost(text, scheme)
	}
	var normal, label []unit
	for _, u := range host {
		if u.isLiteral() && strings.ContainsRune(dots, u.lit) {
			normal = append(append(normal, s.label(label)...), unit{lit: '.'})
			label = nil
			continue
		}
		label = append(label, u)
	}
	normal = append(normal, s.label(label)...)
	if n := len(normal); n > 1 && normal[n-1].is('.') {
		normal = normal[:n-1]
	}
	return normal
}

func (s *speller) literalHost(text, scheme string) []unit {
	if text == "" {
		return nil
	}
	_, network := defaultPorts[scheme]
	host, err := normalHost(text, network || scheme == "file")
	if err != nil {
		s.fail("never matches: " + err.Problem)
		return nil
	}
	if scheme == "file" && host == "localhost" {
		host = ""
	}
	return literalUnits(host)
}

// label returns the normal form of one label of a host that has wildcards.
// A label that has both wildcards and letters beyond ASCII can only match the
// host as people see it, and is written that way.
func (s *speller) label(label []unit) []unit {
	text, literal := literalPrefix(label)
	if literal && !isASCII(text) {
		mapped, err := mapHost(text)
		if err != nil {
			s.fail("never matches: " + err.Problem)
		}
		return literalUnits(mapped)
	}
	var normal []unit
	for _, u := range label {
		if !u.isLiteral() {
			s.hostClass(u.glob)
			normal = append(normal, u)
			continue
		}
		if strings.ContainsRune("%\\<>^|`\" ", u.lit) {
			s.fail("has a character that no host has in its normal form")
		}
		normal = append(normal, literalUnits(strings.ToLower(norm.NFKC.String(string(u.lit))))...)
	}
	return normal
}

// hostClass refuses a class that no normal form of a host could match, or that
// is an IPv6 address whose brackets are not escaped.
func (s *speller) hostClass(class string) {
	for i := range len(class) {
		switch c := class[i]; {
		case 'A' <= c && c <= 'Z':
			s.fail("has an upper-case letter in a class of its host, which no normal form has")
		case c == ':':
			s.fail(`has a class where an IPv6 address seems to be meant: write \[ and \]`)
		}
	}
}
