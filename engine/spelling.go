package engine

import "slices"

// spellings returns the ways in which units, a pattern without alternatives,
// must be written to match every normalised reading that it means: as it is,
// and with scheme, host, port and path in their normal forms. Where a ** may
// stand for the part of a URL in which the host begins, what follows is
// written both as a host and as a path.
func spellings(units []unit) ([][]unit, string) {
	return nestedSpellings(units, 0)
}

// nestedSpellings is [spellings] of a URL within as many others.
func nestedSpellings(units []unit, depth int) ([][]unit, string) {
	s := speller{base: literalText(units), open: endsInSuper(units), all: [][]unit{units}, depth: depth}
	if depth == maxNesting {
		return nil, "nests more than 4 URLs, which no resource does"
	}
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
	// depth is the number of URLs around this one.
	depth int
}

// add adds a spelling unless it only narrows wildcards of the pattern itself.
func (s *speller) add(units []unit) {
	text := literalText(units)
	if text != s.base && (!s.open || text != s.base+"/") {
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
		all, problem := nestedSpellings(rest, s.depth+1)
		if problem != "" {
			s.fail(problem)
		}
		for _, spelling := range all {
			s.add(slices.Concat(scheme, spelling))
		}
		return
	}
	certain, possible, open := domainsNormal(rest)
	if open > 1 {
		s.fail("has wildcards in several domains that are not in lower case")
	}
	for _, path := range slices.Concat(s.paths(rest, ""), s.paths(certain, ""), s.paths(possible, "")) {
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
