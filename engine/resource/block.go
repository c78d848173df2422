package resource

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// blockReadings returns the readings of a block: the text as written, and every reading of it and
// of its other spellings. There are five variants of each of these readings: without its query,
// without parameters, with every escape decoded, with compatibility characters replaced (NFKC),
// and with all of these changes together.
func blockReadings(t *text) ([]Reading, *Error) {
	var all collection
	all.add(Raw, t.raw)
	all.addVariants(t)
	for _, other := range t.otherSpellings() {
		if other.form == formService { // a control character in it does not end the search
			if err := other.readService(other.rest); err != nil {
				return nil, err
			}
		} else if other.read() != nil { // it is not a valid spelling
			continue
		}
		all.addVariants(&other)
	}
	return all.list, nil
}

// otherSpellings returns t as some programs see it. These programs first cut off the query, decode
// every escape, replace compatibility characters or read a backslash as a slash. Only then do they
// resolve dot segments. otherSpellings also returns mail addresses in a name, after mailto://, and
// with white space inside.
func (t *text) otherSpellings() []text {
	same, bare := t.raw, t.raw
	if i := strings.IndexAny(bare, "?#"); i > 0 && t.form != formService {
		bare = bare[:i]
	}
	decoded, twice, all := decodeAll(t.raw), "", bare
	for range 2 {
		all = norm.NFKC.String(decodeAll(all))
	}
	var others []text
	switch {
	case t.form == formWeb: // an escaped ? or # stays a letter of the path
		decoded, all = t.raw, norm.NFKC.String(canonical(bare))
		if same, _, _ = strings.Cut(same, "#"); !hasDots(same, encodedDots) { // dots in canonical form
			same, bare = canonical(same), canonical(bare)
		}
	case t.form == formFile: // of a service and a name a server decodes twice
		if twice = Decode(Decode(t.raw)); twice == decoded {
			twice = ""
		}
	case t.form == formName:
		others = addressesWithin(decoded)
	case t.form == formAddresses || schemes[t.scheme] == formAddresses:
		list := strings.TrimLeft(t.rest, "/")
		others = addressesWithin(list)
		bare := withoutSpace(decodeAll(list))
		for _, list := range [...]string{list, bare, manyDots.ReplaceAllString(bare, ".")} {
			others = append(others, text{form: formAddresses, scheme: t.scheme, rest: list})
		}
	}
	for _, raw := range [...]string{
		bare, decoded, twice, slashed(t.raw), norm.NFKC.String(t.raw), all, slashed(all),
	} {
		if raw = escapedBytes(raw); raw == "" || raw == t.raw || raw == same {
			continue
		}
		other := newText(raw)
		isURL := other.form == formService && strings.HasPrefix(asciiLower(t.raw), other.scheme+":") // postgres:/\db
		if other.form == t.form || isURL {
			others = append(others, other)
		}
	}
	return others
}

// addressesWithin returns the mail addresses in a text that is not a list of addresses. It looks
// at the text both with and without white space.
func addressesWithin(s string) []text {
	var all []text
	s = decodeAll(s)
	for _, s := range [...]string{s, withoutSpace(s)} {
		for piece := range strings.FieldsFuncSeq(s, func(r rune) bool {
			return strings.ContainsRune("?&=,;/#", r) || cutsAddress(r)
		}) {
			if strings.IndexByte(piece, '@') >= 0 {
				all = append(all, text{form: formAddresses, scheme: "mailto", rest: withoutSpace(piece)})
			}
		}
	}
	return all
}

// withoutSpace drops white space and control characters.
func withoutSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// addVariants adds the readings of t and their variants.
func (c *collection) addVariants(t *text) {
	for _, r := range slices.Concat(t.readings.list, t.blocks.list) {
		variants := t.form.variants(r.Text)
		for _, s := range variants {
			if trimmed := strings.TrimRight(s, "/"); trimmed != s && t.form.isPath(trimmed) {
				variants = append(variants, trimmed)
			}
		}
		for _, s := range variants {
			c.addFolded(r.Readers, s)
			if strings.HasPrefix(s, "//") {
				c.addFolded(r.Readers, s[1:])
			}
			if path, ok := strings.CutPrefix(s, "file://"); ok && t.form == formFile {
				if !strings.HasPrefix(path, "/") {
					path = "//" + path
				}
				c.addFolded(r.Readers, path)
				if isDrive(path[1:]) {
					c.addFolded(r.Readers, path[1:])
				}
			}
			if r.Readers&Address != 0 {
				c.addFolded(r.Readers, "mailto:"+s)
			}
		}
	}
}

// isPath reports whether s, a reading without the slash at its end, still has a path. It is false
// if that slash ended a query.
func (f form) isPath(s string) bool {
	if f == formWeb && strings.Count(s, "/") <= len("//") {
		return false
	}
	return s != "" && !strings.HasSuffix(s, ":") && strings.IndexByte(s, '?') < 0
}

// addFolded adds a reading and up to two further forms. One has the scheme in lower case, because
// URNs ignore the case of their scheme. The other is case-folded, for readers that ignore case.
func (c *collection) addFolded(readers Reader, s string) {
	c.add(readers, s)
	if colon := strings.IndexAny(s, ":/"); colon > 0 && s[colon] == ':' {
		c.add(readers, asciiLower(s[:colon])+s[colon:])
	}
	if folds := readers & (Windows | Address); folds != 0 {
		c.add(folds, cases.Fold().String(s))
	}
}

// variants returns the variants of a canonical reading, including the reading itself. In each of
// them dot segments are resolved again.
func (f form) variants(s string) []string {
	base, path, query := f.split(s)
	bare := path
	if f != formWeb && f != formService { // ? and # are letters here, but others end the path there
		bare = path[:letterQuery(path)]
	}
	all := withoutParameters(bare)
	for range 2 {
		all = withoutParameters(composed(decodedLetters(all)))
	}
	list := []string{s}
	for _, v := range [...]struct{ path, query string }{
		{bare, ""},
		{resolve(withoutParameters(path), literalDots), query},
		{decodedLetters(path), decodedQuery(query, decodeAll)},
		{composed(path), decodedQuery(query, norm.NFKC.String)},
		{resolve(all, literalDots), ""},
		{resolve(mergeSlashes(all), literalDots), ""},
	} {
		if v.path == path && v.query == query {
			continue
		}
		if s := base + v.path + v.query; !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// split cuts a canonical reading into three parts. It cuts at the end of the authority and at the
// query.
func (f form) split(s string) (base, path, query string) {
	start := 0
	if f == formWeb || f == formService || f == formFile {
		start = strings.Index(s, "://") + len("://")
		if end := strings.IndexAny(s[start:], "/?"); end >= 0 {
			start += end
		} else {
			start = len(s)
		}
	}
	path, _, _ = strings.Cut(s[start:], "?")
	return s[:start], path, s[start+len(path):]
}

// letterQuery returns the place of the first ? or # that is a letter in path, or the length of
// path.
func letterQuery(path string) int {
	for i := range len(path) {
		if c, ok := escapeAt(path, i); ok && (c == '?' || c == '#') {
			return i
		}
	}
	return len(path)
}

// decodedLetters decodes path until no escape is left.
func decodedLetters(path string) string {
	if strings.IndexByte(path, '%') < 0 {
		return path
	}
	return letters(resolve(decodeAll(path), literalDots))
}

// composed replaces compatibility characters.
func composed(path string) string {
	if isASCII(path) {
		return path
	}
	return resolve(canonical(norm.NFKC.String(path)), literalDots)
}

// decodedQuery applies f to the query after its question mark.
func decodedQuery(query string, f func(string) string) string {
	if query == "" {
		return ""
	}
	return "?" + letters(f(query[1:]))
}
