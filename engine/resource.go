package engine

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// MaxResourceLength is the number of bytes that a resource, and its normal
// form, may have.
const MaxResourceLength = 8192

// ResourceError says why a resource has no single meaning and so cannot be
// evaluated. Its message never repeats any of the resource.
type ResourceError struct {
	Problem string
}

// Error implements error.
func (e *ResourceError) Error() string { return "resource: " + e.Problem }

// Readings are the ways in which a resource can be read. A blocked pattern
// denies when any reading ([Readings.At]) matches, an allowed pattern allows
// only when it matches every normalised one ([Readings.NormalAt]).
//
// The normalised readings are
//
//   - the normal form: what a browser would read (see location);
//   - the normal form with encoded slashes and backslashes read as slashes;
//   - where the path of a URL has backslashes, which are slashes to browsers alone,
//     the normal form with them encoded, and this with encoded slashes read as
//     slashes; where a path has both encoded, with these alone read as slashes;
//   - where a relative path climbs above its root, which the normal form does
//     not, each of these with the leading ".." kept;
//   - where a URL has a fragment, which is not part of what it names, each of
//     these without it.
//
// Reading any normalised reading of the first three kinds gives the same form
// again: no spelling of it has another meaning.
//
// The readings of a block are these, the raw string with and without its
// fragment, and what is left when every escape is decoded, compatibility
// characters (full-width letters, ligatures) are replaced by the ordinary ones
// and the host is in Unicode.
type Readings struct {
	raw    string
	normal string
	// normals and all are empty when raw is its own only reading.
	normals []string
	all     []string
}

// Raw returns the resource as it was written.
func (r *Readings) Raw() string { return r.raw }

// Normal returns the normal form. Reading it gives the same normal form.
func (r *Readings) Normal() string { return r.normal }

// NormalLen returns the number of normalised readings, at least 1.
func (r *Readings) NormalLen() int { return max(len(r.normals), 1) }

// NormalAt returns a normalised reading; NormalAt(0) is [Readings.Normal].
func (r *Readings) NormalAt(i int) string {
	if i == 0 {
		return r.normal
	}
	return r.normals[i]
}

// Len returns the number of distinct readings, at least 1.
func (r *Readings) Len() int { return max(len(r.all), 1) }

// At returns a reading; At(0) is [Readings.Raw].
func (r *Readings) At(i int) string {
	if i == 0 {
		return r.raw
	}
	return r.all[i]
}

// Projection returns the normal form without user info, query and fragment:
// what may be stored of a resource.
func (r *Readings) Projection() string {
	s := r.normal
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	return dropPassword(s)
}

// dropPassword drops what stands before an @ in the first segment of an opaque
// normal form: user:password@host/x is no URL, but some write it for one. The
// schemes whose address is a mailbox keep it, and so do names of packages and
// images: npm:left-pad@1.3.0 says what is installed, 1.3.0 doesn't.
func dropPassword(s string) string {
	scheme, rest, ok := cutScheme(s)
	switch scheme {
	case "mailto", "sip", "sips", "xmpp", "acct", "im":
		return s
	}
	if strings.HasPrefix(rest, "//") {
		return s
	}
	first, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(first, '@')
	if at <= 0 || !ok && strings.IndexByte(first[:at], ':') < 0 || isVersion(first[at+1:]) {
		return s
	}
	return rest[at+1:]
}

// isVersion reports whether s is a version of up to three numbers, which no host
// is, a digest or the latest.
func isVersion(s string) bool {
	switch algorithm, _, _ := strings.Cut(s, ":"); algorithm {
	case "sha256", "sha384", "sha512", "latest":
		return true
	}
	release, _, _ := strings.Cut(strings.TrimPrefix(s, "v"), "+")
	release, _, _ = strings.Cut(release, "-")
	numbers := strings.Split(release, ".")
	for _, n := range numbers {
		if n == "" || strings.ContainsFunc(n, func(r rune) bool { return r < '0' || r > '9' }) {
			return false
		}
	}
	return len(numbers) <= 3
}

// ReadResource returns the readings of raw, or a *[ResourceError] when raw has
// no single meaning. It allocates nothing when raw is its own only reading.
func ReadResource(raw string) (Readings, error) {
	if isPlain(raw) {
		return Readings{raw: raw, normal: raw}, nil
	}
	r, err := readAll(raw)
	if err != nil {
		return Readings{}, err
	}
	return r, nil
}

func readAll(raw string) (Readings, *ResourceError) {
	if err := checkLength(raw); err != nil {
		return Readings{}, err
	}
	if err := checkText(raw); err != nil {
		return Readings{}, err
	}
	l, err := parseLocation(raw)
	if err != nil {
		return Readings{}, err
	}
	slashed, err := l.slashed()
	if err != nil {
		return Readings{}, err
	}
	r := Readings{raw: raw, normal: l.String()}
	if err := checkFixed(r.normal); err != nil {
		return Readings{}, err
	}
	r.normals = appendForms(make([]string, 0, 4), l)
	if slashed.path != l.path {
		if err := checkFixed(slashed.String()); err != nil {
			return Readings{}, err
		}
		r.normals = appendForms(r.normals, slashed)
	}
	unbrowsed, err := l.unbrowsed()
	if err != nil {
		return Readings{}, err
	}
	for _, kept := range unbrowsed {
		if err := checkFixed(kept.String()); err != nil {
			return Readings{}, err
		}
		r.normals = appendForms(r.normals, kept)
	}
	r.all = append(make([]string, 0, 4), raw)
	if l.hierarchical {
		unfragmented, _, _ := strings.Cut(raw, "#")
		r.all = appendDistinct(r.all, unfragmented)
	}
	for _, s := range r.normals {
		r.all = appendDistinct(r.all, s)
	}
	r.all = appendDecoded(r.all, slashed)
	return r, nil
}

func checkLength(s string) *ResourceError {
	switch {
	case s == "":
		return &ResourceError{"it is empty"}
	case len(s) > MaxResourceLength:
		return &ResourceError{"it is longer than 8192 bytes"}
	}
	return nil
}

// checkFixed refuses a normal form that would be read in another way again: a
// path that is a URL once its dot segments are resolved, say.
func checkFixed(normal string) *ResourceError {
	if isPlain(normal) {
		return nil
	}
	if err := checkLength(normal); err != nil {
		return err
	}
	again, err := parseLocation(normal)
	if err != nil || again.String() != normal {
		return &ResourceError{"its normal form reads differently"}
	}
	return nil
}

// appendForms appends the distinct normalised readings of l.
func appendForms(forms []string, l location) []string {
	forms = appendDistinct(forms, l.String())
	climbed := l
	if l.climbs > 0 {
		climbed.path = strings.Repeat("../", l.climbs)
		if l.path != "." {
			climbed.path += l.path
		}
		forms = appendDistinct(forms, climbed.String())
	}
	if l.hierarchical && l.fragment != "" {
		l.fragment = ""
		forms = appendDistinct(forms, l.String())
	}
	if l.scheme == "file" && l.query != "" {
		l.fragment, l.query = "", ""
		forms = appendDistinct(forms, l.String())
	}
	return forms
}

// appendDecoded appends what people see of l, and the normal form of that.
func appendDecoded(readings []string, l location) []string {
	l.host = displayHost(l.host)
	s := l.String()
	seen := norm.NFKC.String(decodeExcept(s, ""))
	if seen == s {
		return readings
	}
	readings = appendDistinct(readings, seen)
	l.path = norm.NFKC.String(decodeExcept(l.path, "%?#"))
	folded, err := parseLocation(l.String())
	if err != nil {
		return readings // it is no spelling of anything
	}
	for _, form := range appendForms(nil, folded) {
		readings = appendDistinct(readings, form)
	}
	return readings
}

func appendDistinct(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
