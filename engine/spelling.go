package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"golang.org/x/text/unicode/norm"
)

// spellings returns the ways in which units, a pattern without alternatives,
// must be written to match every normalised reading that it means: as it is,
// and with scheme, host, port and path in their normal forms. Where a ** may
// stand for the part of a URL in which the host begins, what follows is
// written both as a host and as a path.
func spellings(units []unit) ([][]unit, string) {
	s := speller{base: literalText(units), open: endsInSuper(units), all: [][]unit{units}}
	colon := schemeEnd(units)
	switch {
	case colon > 0 && isURLPattern(units[colon:]):
		s.url(lowerUnits(units[:colon]), units[colon+3:])
	case colon > 0 && isSpecialPattern(units[:colon]):
		s.fail("has a scheme that is followed by a host: write scheme://host")
	default:
		s.path(units, colon)
		s.hostAfterSuper(units)
	}
	s.exact(units)
	return s.all, s.problem
}

// exact adds the normal form of a pattern without wildcards.
func (s *speller) exact(units []unit) {
	text, literal := literalPrefix(units)
	if !literal || s.problem != "" {
		return
	}
	l, err := parseLocation(text)
	if err == nil {
		err = checkFixed(l.String())
	}
	if err != nil {
		s.fail("never matches: " + err.Problem)
		return
	}
	s.add(literalUnits(l.String()))
}

// speller collects spellings. base is the literal text of the pattern, open
// whether it ends in **.
type speller struct {
	base    string
	open    bool
	all     [][]unit
	problem string
}

// add adds a spelling unless it only narrows wildcards of the pattern itself.
func (s *speller) add(units []unit) {
	text := literalText(units)
	if text != s.base && !(s.open && text == s.base+"/") {
		s.all = append(s.all, units)
	}
}

func (s *speller) fail(problem string) {
	if s.problem == "" {
		s.problem = problem
	}
}

// path adds the spellings of a pattern that is no URL, or of a URL in an
// opaque scheme.
func (s *speller) path(units []unit, colon int) {
	scheme, rest := lowerUnits(units[:colon+1]), units[colon+1:]
	if colon > 0 && patternNests(rest) {
		all, problem := spellings(rest)
		if problem != "" {
			s.fail(problem)
		}
		for _, spelling := range all {
			s.add(slices.Concat(scheme, spelling))
		}
		return
	}
	for _, path := range slices.Concat(s.paths(rest, ""), s.paths(domainsNormal(rest), "")) {
		s.add(slices.Concat(scheme, path))
	}
}

// hostAfterSuper adds the spellings of a pattern in which a ** may stand for a
// scheme and the beginning of a host: in **.Example.com/** it does.
func (s *speller) hostAfterSuper(units []unit) {
	for i, u := range units {
		if !u.isSuper() {
			if u.isLiteral() && u.lit != ':' && (u.lit >= 128 || !isSchemeByte(byte(u.lit))) {
				return
			}
			continue
		}
		scheme := slices.Concat(units[:i], []unit{wildcard("*")})
		if i > 0 && units[i-1].is(':') {
			scheme = units[:i-1]
		}
		rest := slices.Concat([]unit{wildcard("*")}, units[i+1:])
		sub := speller{base: literalText(scheme) + "://" + literalText(rest), open: s.open}
		if sub.url(lowerUnits(scheme), rest); sub.problem == "" {
			s.all = append(s.all, sub.all...)
		}
	}
}

// schemeEnd returns the index of the colon after the scheme, or -1.
func schemeEnd(units []unit) int {
	for i, u := range units {
		switch {
		case u.is(':') && i > 0:
			return i
		case u.isLiteral() && (u.lit >= 128 || !isSchemeByte(byte(u.lit))),
			i == 0 && u.isLiteral() && !isAlpha(byte(u.lit)):
			return -1
		}
	}
	return -1
}

// patternNests reports whether units, what follows an opaque scheme, is a URL
// of its own.
func patternNests(units []unit) bool {
	for {
		colon := schemeEnd(units)
		if colon < 0 {
			return false
		}
		if isURLPattern(units[colon:]) || isSpecialPattern(units[:colon]) {
			return true
		}
		units = units[colon+1:]
	}
}

func isSpecialPattern(scheme []unit) bool {
	name, literal := literalPrefix(scheme)
	return literal && isSpecial(asciiLower(name))
}

func isSchemeByte(c byte) bool {
	return isAlpha(c) || isDigit(c) || c == '+' || c == '-' || c == '.'
}

func isURLPattern(units []unit) bool {
	return len(units) >= 3 && units[1].is('/') && units[2].is('/')
}

// url adds the spellings of scheme://rest.
func (s *speller) url(scheme, rest []unit) {
	name, literal := literalPrefix(scheme)
	if len(rest) > 0 && rest[0].is('/') && literal && isSpecial(name) && name != "file" {
		s.fail("has doubled slashes, which no normal form has")
		return
	}
	end := indexUnit(rest, "/?#")
	if literal && name == "file" {
		rest, end = driveAsPath(rest, end)
	}
	s.authority(scheme, rest[:end], rest[end:])
	for k, u := range rest[:end] {
		if u.isSuper() {
			s.authority(scheme, rest[:k], rest[k:])
		}
	}
}

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

func lowerUnits(units []unit) []unit {
	units = slices.Clone(units)
	for i, u := range units {
		if u.isLiteral() && 'A' <= u.lit && u.lit <= 'Z' {
			units[i].lit |= 0x20
		}
	}
	return units
}

func endsInSuper(units []unit) bool {
	return len(units) > 0 && units[len(units)-1].isSuper()
}
