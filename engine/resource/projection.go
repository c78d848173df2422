package resource

import (
	"regexp"
	"strings"
)

// Projection returns the normal form without user info, query and fragment. Only this part of a
// resource may be stored. A name has no query, so /data/what?.txt stays whole. But some people write
// host/x?token=y as if it were a URL, so a name ends at a ? that a parameter follows.
func (r *Readings) Projection() string {
	s := r.normal
	if r.form == formName {
		if m := parameters.FindStringIndex(s); m != nil {
			s = s[:max(1, m[0])] // a resource is never empty
		}
		return withoutPassword(s)
	}
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	return s
}

// parameters matches a ? with a parameter after it, as in ?key=value or ?flag&key=value.
var parameters = regexp.MustCompile(`\?(?:[^?\s]*[&;])?[^?/=&;\s]+(?:=|%3[Dd])`)

// withoutPassword drops the text before an @ in the first segment of a name. user:password@host/x
// is not a URL, but some people write it as if it were one. Schemes whose address is a mailbox
// keep that text. So do names of packages and images: in npm:left-pad@1.3.0, left-pad says what is
// installed.
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

// version matches a version of up to three numbers, a digest, or latest. No host has the form of
// such a version.
var version = regexp.MustCompile(
	`(?s)^(?:v?[0-9]+(?:\.[0-9]+){0,2}(?:[-+].*)?|(?:sha256|sha384|sha512|latest)(?::.*)?)$`,
)
