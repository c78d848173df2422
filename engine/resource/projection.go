package resource

import (
	"regexp"
	"strings"
)

// Projection returns the normal form without user info, query and fragment: what
// may be stored of a resource.
func (r *Readings) Projection() string {
	s := r.normal
	if r.form == formName {
		// A # is a letter of a name, and so is a ? that it starts with.
		if i := strings.IndexByte(s, '?'); i > 0 {
			s = s[:i]
		}
		return withoutPassword(s)
	}
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	return s
}

// withoutPassword drops what stands before an @ in the first segment of a name:
// user:password@host/x is no URL, but some write it for one. The schemes whose
// address is a mailbox keep it, and so do names of packages and images:
// npm:left-pad@1.3.0 says what is installed, 1.3.0 doesn't.
func withoutPassword(s string) string {
	scheme, rest, ok := cutScheme(s)
	switch scheme {
	case "sip", "sips", "xmpp", "acct", "im":
		return s
	}
	if strings.HasPrefix(rest, "//") {
		return s
	}
	first, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(first, '@')
	if at <= 0 || !ok && strings.IndexByte(first[:at], ':') < 0 || version.MatchString(first[at+1:]) {
		return s
	}
	return rest[at+1:]
}

// version is a version of up to three numbers, which no host is, a digest or the
// latest.
var version = regexp.MustCompile(
	`(?s)^(?:v?[0-9]+(?:\.[0-9]+){0,2}(?:[-+].*)?|(?:sha256|sha384|sha512|latest)(?::.*)?)$`,
)
