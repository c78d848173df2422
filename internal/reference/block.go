package reference

import (
	"slices"
	"strings"

	"golang.org/x/text/cases"
)

// blockReadings returns the readings for a block. They are the readings for an allowance, and
// changed forms of each reading: without its query, without ;…, decoded, and normalised. Each
// change is made alone, and then all changes together. Further readings have no trailing slash, or
// one slash in place of two leading slashes. If case does not count, there are case-folded readings
// too.
func blockReadings(t text, f form, readings []reading) []reading {
	base := slices.Clone(readings)
	switch f { // in these forms a block reads a backslash as a slash, too
	case serviceForm:
		base = append(base, others(slashed(t))...)
	case nameForm:
		base = append(base, others(forward(t))...)
	}
	for _, r := range slices.Clone(base) {
		base = append(base, otherHosts(r, f)...)
		if path, ok := filePath(r); ok {
			base = append(base, path)
		}
	}
	if scheme, _ := schemeOf(t); f == nameForm || f == addressForm || strings.EqualFold(show(scheme), "mailto") {
		for _, a := range addressesWithin(t) {
			base = append(base, reading{by: Addresses, path: a})
		}
	}
	if f == nameForm {
		for _, r := range readings {
			base = append(base, reading{by: r.by, path: foldScheme(r.path)})
		}
	}
	var out []reading
	for _, r := range base {
		if r.by == Addresses {
			out = append(out, addressBlocks(r)...)
			continue
		}
		for _, v := range []reading{r, withoutQuery(r), withoutParameters(r), undone(r, decoded), undone(r, nfkc), together(r)} {
			out = append(out, slashVariants(v)...)
		}
	}
	for _, r := range out {
		if r.by == Windows || r.by == Addresses {
			out = append(out, reading{by: r.by, path: fold(r.full())})
		}
	}
	return once(out)
}

// others returns the readings of another spelling of the text, or none if that spelling is refused.
func others(t text) []reading {
	readings, err := read(t)
	if err != nil {
		return nil
	}
	return readings
}

// foldScheme returns a name with its scheme in lower case, because Node.js reads URN:a:b as
// urn:a:b.
func foldScheme(t text) text {
	colon, slash := slices.Index(t, ':'), slices.Index(t, '/')
	if colon < 0 || slash >= 0 && slash < colon {
		return t
	}
	return concat(eachRun(t[:colon], strings.ToLower), t[colon:])
}

// addressBlocks returns the readings of one address for a block, with and without mailto:.
func addressBlocks(r reading) []reading {
	var out []reading
	for _, p := range []text{r.path, cutLetterQuery(r.path), decoded(r.path), nfkc(r.path), settle(cutLetterQuery(settle(r.path)))} {
		for _, v := range slashVariants(reading{by: Addresses, path: p}) {
			bare := v.path
			if hasPrefix(bare, "mailto:") {
				bare = bare[len("mailto:"):]
			}
			out = append(out, v, reading{by: Addresses, path: bare})
			if !hasPrefix(bare, "sms:") && !hasPrefix(bare, "tel:") {
				out = append(out, reading{by: Addresses, path: concat(text("mailto:"), bare)})
			}
		}
	}
	return out
}

// isName reports whether ? and # are ordinary characters in the reading.
func (r reading) isName() bool {
	return len(r.head) == 0 && len(r.query) == 0 || r.by == POSIX || r.by == Windows
}

func withoutQuery(r reading) reading {
	r.query = nil
	if r.isName() {
		r.path = cutLetterQuery(r.path)
	}
	return resolved(r)
}

// cutLetterQuery cuts a text at the first ? or #, for a form in which ? and # are ordinary
// characters.
func cutLetterQuery(t text) text {
	if i := slices.IndexFunc(t, func(c rune) bool { return c&^escaped == '?' || c&^escaped == '#' }); i >= 0 {
		return t[:i]
	}
	return t
}

func withoutParameters(r reading) reading {
	segments := splitText(r.path, '/')
	for i, s := range segments {
		if semicolon := slices.Index(s, ';'); semicolon >= 0 {
			segments[i] = s[:semicolon]
		}
	}
	r.path = joinText(segments, '/')
	return resolved(r)
}

// decoded decodes the escapes of a text, again and again, until no escape is left.
func decoded(t text) text { return letters(decodeAll(plain(t))) }

// undone applies f to the texts of a reading.
func undone(r reading, f func(text) text) reading {
	r.head, r.path = f(r.head), f(r.path)
	if len(r.query) > 0 {
		r.query = concat(text("?"), f(r.query[1:]))
	}
	return resolved(r)
}

// settle decodes and normalises a text, again and again, until nothing changes.
func settle(t text) text {
	for {
		next := nfkc(decoded(t))
		if slices.Equal(next, t) {
			return t
		}
		t = next
	}
}

func together(r reading) reading {
	return withoutParameters(undone(withoutQuery(r), settle))
}

// resolved resolves the dot segments of a changed reading again.
func resolved(r reading) reading {
	switch {
	case r.by == Windows && len(r.head) == 0:
		r.path = windows(r.path)
	case r.by == Windows && isDrive(r.path[min(1, len(r.path)):]):
		r.path = concat(text("/"), windows(r.path[1:]))
	case r.isName():
		r.path = posix(r.path)
	default:
		r.path = resolveURL(r.path, literalDots)
	}
	return r
}

func slashVariants(r reading) []reading {
	paths := []text{r.path}
	if hasPrefix(r.path, "//") {
		paths = append(paths, r.path[1:])
	}
	var out []reading
	for _, p := range paths {
		r.path = p
		out = append(out, r)
		if n := len(p); n > 1 && p[n-1] == '/' {
			r.path = p[:n-1]
			out = append(out, r)
		}
	}
	return out
}

// fold folds the case of a text's unescaped characters.
func fold(t text) text { return eachRun(t, cases.Fold().String) }

// Blocked reports whether the pattern matches the raw string or a reading for a block. reader names
// the reader of the matching reading.
func Blocked(p *Pattern, r *Resource) (reader string, ok bool) {
	for _, rd := range r.block {
		if p.matches(rd, true, nil) {
			return rd.by, true
		}
	}
	return asWritten, p.matchesRaw(r.raw)
}
