package engine

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// paths returns the normal form of a pattern's path, query and fragment, and
// that with the escapes decoded that mean the same as the character they stand
// for. scheme is empty where it is unknown.
func (s *speller) paths(units []unit, scheme string) [][]unit {
	normal := s.encode(units, scheme, func(text string) string { return text })
	s.checkPath(normal)
	decoded := s.encode(units, scheme, func(text string) string {
		return norm.NFC.String(decodeExcept(text, `%?#/\`))
	})
	if render(normal) == render(decoded) {
		return [][]unit{normal}
	}
	return [][]unit{normal, decoded}
}

// encode returns units with every run of literals in its canonical form; those
// of the path go through transform first.
func (s *speller) encode(units []unit, scheme string, transform func(string) string) []unit {
	encoder := pathEncoder{scheme: scheme, set: encodePath, transform: transform}
	for _, u := range units {
		if !u.isLiteral() {
			encoder.flush()
			encoder.units = append(encoder.units, u)
			continue
		}
		encoder.literal(u.lit)
	}
	encoder.flush()
	encoder.dropEmpty()
	if encoder.err != nil {
		s.fail("never matches: " + encoder.err.Problem)
	}
	return encoder.units
}

// pathEncoder encodes the literals of a pattern as the part of a URL that they
// are in.
type pathEncoder struct {
	scheme    string
	set       string
	transform func(string) string
	run       strings.Builder
	units     []unit
	// delimited is the number of units up to the last delimiter.
	delimited int
	err       *ResourceError
}

func (e *pathEncoder) literal(r rune) {
	switch {
	case r == '#' && e.set != encodeFragment:
		e.delimiter(r, encodeFragment)
	case r == '?' && e.set == encodePath && isSpecial(e.scheme):
		e.delimiter(r, encodeSpecialQuery)
	case r == '?' && e.set == encodePath:
		e.delimiter(r, encodeQuery)
	case r == '\\' && e.set == encodePath:
		e.run.WriteByte('/')
	default:
		e.run.WriteRune(r)
	}
}

func (e *pathEncoder) delimiter(r rune, set string) {
	e.flush()
	e.dropEmpty()
	e.units = append(e.units, unit{lit: r})
	e.delimited = len(e.units)
	e.set = set
}

// dropEmpty drops the delimiter of an empty query or fragment.
func (e *pathEncoder) dropEmpty() {
	if n := len(e.units); n > 0 && n == e.delimited {
		e.units = e.units[:n-1]
	}
}

func (e *pathEncoder) flush() {
	text := e.run.String()
	e.run.Reset()
	if err := checkRunes(text); err != nil {
		e.err = err
		return
	}
	if e.set == encodePath {
		if _, err := canonical(text, e.set); err != nil {
			e.err = err
			return
		}
		text = e.transform(text)
	}
	text, err := canonical(text, e.set)
	if err != nil {
		e.err = err
		return
	}
	e.units = append(e.units, literalUnits(text)...)
}

// checkPath refuses a path that no normal form has.
func (s *speller) checkPath(units []unit) {
	var segment []unit
	for i, u := range units {
		switch {
		case u.is('?') || u.is('#'):
			s.checkSegment(segment)
			return
		case !u.is('/'):
			segment = append(segment, u)
			continue
		case i > 0 && units[i-1].is('/'):
			s.fail("has doubled slashes, which no normal form has")
		}
		s.checkSegment(segment)
		segment = nil
	}
	s.checkSegment(segment)
}

func (s *speller) checkSegment(segment []unit) {
	text, literal := literalPrefix(segment)
	if literal && (text == "." || text == "..") {
		s.fail("has a dot segment, which no normal form has")
	}
	if hasDotParameter(text) {
		s.fail("has a dot segment with a parameter, which is refused in a resource")
	}
}

// domainsNormal returns units with every domain name after an @ in the first
// segment in its normal form, like lowerDomains. Wildcards may leave open
// whether what they stand for is a domain name: certain has those as they are
// written, possible in the normal form, and open is the number of them.
func domainsNormal(units []unit) (certain, possible []unit, open int) {
	end := indexUnit(units, "/?#")
	start := 0
	for i := 0; i < end; i++ {
		if !units[i].is('@') {
			continue
		}
		domain := units[i+1 : end]
		domain = domain[:indexUnit(domain, "@"+domainEnd)]
		normal := domainNormal(domain)
		certain = append(certain, units[start:i+1]...)
		possible = append(possible, units[start:i+1]...)
		possible = append(possible, normal...)
		if _, literal := literalPrefix(domain); literal {
			certain = append(certain, normal...)
		} else {
			certain = append(certain, domain...)
			if render(normal) != render(domain) {
				open++
			}
		}
		start = i + 1 + len(domain)
	}
	return append(certain, units[start:]...), append(possible, units[start:]...), open
}

func domainNormal(domain []unit) []unit {
	text, literal := literalPrefix(domain)
	if literal && !strings.ContainsAny(text, dots) {
		return domain
	}
	var s speller
	if normal := s.host(domain, ""); s.problem == "" {
		return normal
	}
	return domain
}

// indexUnit returns the index of the first literal that is one of chars, the
// number of units where there is none.
func indexUnit(units []unit, chars string) int {
	for i, u := range units {
		if u.isLiteral() && strings.ContainsRune(chars, u.lit) {
			return i
		}
	}
	return len(units)
}
