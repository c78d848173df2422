package resource

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// blockReadings returns what a block looks at: the text as it was written, every
// reading of t, and what is left of each without its query, without parameters,
// with every escape decoded, with compatibility characters replaced (NFKC), and
// with all of these together.
func blockReadings(t *text) []Reading {
	b := blocks{form: t.form}
	b.all.add(Raw, t.raw)
	for _, r := range slices.Concat(t.readings.list, t.blocks) {
		b.read(r)
	}
	b.reread(t)
	b.addresses(t)
	return b.all.list
}

// reread reads what is left of the text itself without its query, with every escape
// decoded and with compatibility characters replaced: dot segments were resolved
// before that in the readings.
func (b *blocks) reread(t *text) {
	if t.form == formAddresses {
		return
	}
	bare := t.raw
	if i := strings.IndexAny(bare, "?#"); i > 0 && t.form != formService {
		bare = bare[:i]
	}
	decoded, all := decodeAll(t.raw), bare
	for range 2 {
		all = norm.NFKC.String(decodeAll(all))
	}
	if t.form == formWeb { // an escaped ? or # stays a letter of the path
		decoded, all = t.raw, norm.NFKC.String(canonical(bare))
	}
	for _, raw := range [...]string{bare, decoded, slashed(t.raw), norm.NFKC.String(t.raw), all, slashed(all)} {
		if raw == t.raw || !utf8.ValidString(raw) {
			continue
		}
		other := text{raw: raw}
		other.form, other.scheme, other.rest = classify(raw)
		switch {
		case other.form != t.form && other.form == formService && other.readService() == nil:
		case other.form == t.form && other.read() == nil:
		default:
			continue // it is no spelling of anything
		}
		inner := blocks{form: other.form, all: b.all}
		for _, r := range slices.Concat(other.readings.list, other.blocks) {
			inner.read(r)
		}
		b.all = inner.all
	}
}

// addresses adds the addresses in a name, behind mailto:// and in a list with white
// space within them.
func (b *blocks) addresses(t *text) {
	addresses := blocks{form: formAddresses, all: b.all}
	read := func(scheme, rest string) {
		for _, list := range [...]string{rest, withoutSpace(decodeAll(rest))} {
			inner := text{scheme: scheme, rest: list}
			inner.readAddresses()
			for _, r := range inner.readings.list {
				addresses.read(r)
			}
		}
	}
	scheme, list := t.scheme, t.rest
	switch {
	case t.form == formAddresses:
	case scheme == "mailto" || scheme == "sms" || scheme == "tel":
		list = strings.TrimLeft(list, "/")
	case t.form == formName:
		scheme, list = "mailto", decodeAll(t.raw)
	default:
		return
	}
	if t.form != formName {
		read(scheme, list)
	}
	for _, list := range [...]string{decodeAll(list), withoutSpace(decodeAll(list))} {
		pieces := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune("?&=,;/#", r) || cutsAddress(r) })
		for _, piece := range pieces {
			if strings.IndexByte(piece, '@') >= 0 {
				read("mailto", piece)
			}
		}
	}
	b.all = addresses.all
}

// withoutSpace drops white space and controls.
func withoutSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// blocks collects readings.
type blocks struct {
	form form
	all  collection
}

// read adds the variants of r.
func (b *blocks) read(r Reading) {
	variants := b.variants(r.Text)
	for _, text := range variants {
		if trimmed := strings.TrimRight(text, "/"); trimmed != text && b.isPath(trimmed) {
			variants = append(variants, trimmed)
		}
	}
	for _, text := range variants {
		b.add(r.Readers, text)
		if strings.HasPrefix(text, "//") {
			b.add(r.Readers, text[1:])
		}
		if path, ok := strings.CutPrefix(text, "file://"); ok && b.form == formFile {
			if !strings.HasPrefix(path, "/") {
				path = "//" + path
			}
			b.add(r.Readers, path)
			if isDrive(strings.TrimPrefix(path, "/")) {
				b.add(r.Readers, path[1:])
			}
		}
		if r.Readers&Address != 0 {
			b.add(r.Readers, "mailto:"+text)
		}
	}
}

// isPath reports whether text, which had a slash at its end, still has a path and
// the slash was not in its query.
func (b *blocks) isPath(text string) bool {
	if b.form == formWeb && strings.Count(text, "/") <= len("//") {
		return false
	}
	return text != "" && !strings.HasSuffix(text, ":") && strings.IndexByte(text, '?') < 0
}

// add adds a reading, and its case-folded form where case does not count.
func (b *blocks) add(readers Reader, text string) {
	b.all.add(readers, text)
	if scheme := foldedScheme(text); scheme != text {
		b.all.add(readers, scheme)
	}
	if folds := readers & (Windows | Address); folds != 0 {
		b.all.add(folds, fold(text))
	}
}

// foldedScheme returns a name with what is before its first colon in lower case: a
// URN is the same whatever the case of its scheme.
func foldedScheme(text string) string {
	colon := strings.IndexByte(text, ':')
	if slash := strings.IndexByte(text, '/'); colon <= 0 || slash >= 0 && slash < colon {
		return text
	}
	return asciiLower(text[:colon]) + text[colon:]
}

// fold returns s in the form that texts share which differ in case alone.
func fold(s string) string {
	if isASCII(s) {
		return asciiLower(s)
	}
	return cases.Fold().String(s)
}

// variants returns text and what is left of it, each with its dot segments
// resolved again.
func (b *blocks) variants(text string) []string {
	base, path, query := b.split(text)
	list := []string{text}
	add := func(path, query string) {
		s := base + path + query
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	bare := b.cutQuery(path)
	add(bare, "")
	add(resolve(withoutParameters(path), literalDots), query)
	add(decodedLetters(path), decodedQuery(query, decodeAll))
	add(composed(path), decodedQuery(query, norm.NFKC.String))
	all := withoutParameters(bare)
	for range 2 {
		all = withoutParameters(composed(decodedLetters(all)))
	}
	add(resolve(all, literalDots), "")
	add(resolve(mergeSlashes(all), literalDots), "")
	return list
}

// split cuts a canonical reading at the end of its authority and at its query.
func (b *blocks) split(text string) (base, path, query string) {
	path = text
	if b.form == formWeb || b.form == formService || b.form == formFile {
		start := strings.Index(text, "://")
		if start < 0 {
			return "", text, ""
		}
		start += len("://")
		end := strings.IndexAny(text[start:], "/?")
		if end < 0 {
			return text, "", ""
		}
		base, path = text[:start+end], text[start+end:]
	}
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i:]
	}
	return base, path, query
}

// cutQuery cuts a path at what is a letter to its reader and the start of a query
// or fragment to others.
func (b *blocks) cutQuery(path string) string {
	if b.form == formWeb || b.form == formService {
		return path
	}
	for i := range len(path) {
		if c, ok := escapeAt(path, i); ok && (c == '?' || c == '#') {
			return path[:i]
		}
	}
	return path
}

// decodedLetters decodes every escape until none is left.
func decodedLetters(path string) string {
	if strings.IndexByte(path, '%') < 0 {
		return path
	}
	return letters(resolve(decodeAll(path), literalDots))
}

// composed replaces compatibility characters by the ordinary ones.
func composed(path string) string {
	if isASCII(path) {
		return path
	}
	return resolve(canonical(norm.NFKC.String(path)), literalDots)
}

// decodedQuery applies f to a query behind its question mark.
func decodedQuery(query string, f func(string) string) string {
	if query == "" {
		return ""
	}
	return "?" + letters(f(query[1:]))
}
