package scrub

import (
	"regexp"
	"slices"
	"strings"
)

// Resource returns the text of a resource that may be stored. raw is the resource as it
// was written; kept is its normal form without user info, query and fragment in their
// plain spellings. A secret becomes a tag, as by [Tagger.Identity]. Resource also drops
// the parameters of path segments, as in ;jsessionid=1 or ;password=x, and a query whose
// question mark is encoded. It tags every text before an @ that could be a user and a
// password.
func (t *Tagger) Resource(raw, kept string) string {
	first := t.resource(raw, kept)
	if first == kept {
		return kept
	}
	// The first round has used raw.
	return untilStable(first, t.keys[0], func(text string) string { return t.resource(text, text) })
}

func (t *Tagger) resource(raw, kept string) string {
	kept = dropEncodedQuery(kept)
	if hasColonBeforeAt(kept) || strings.Contains(kept, "%40") {
		kept = replace(kept, pathUserinfo(kept), t.keys[0].tag)
	}
	if strings.Contains(kept, ";") || strings.Contains(kept, "%3B") {
		kept = dropParameters(kept)
	}
	hits := t.prefilter.scan(raw)
	suspect := hits.any()
	if !suspect && kept == raw {
		return kept // nearly always; a second pass would find nothing either
	}
	j := job{left: maxWork}
	spans := t.find(kept, &j)
	if suspect && (kept != raw || len(spans) > 0) {
		spans = merge(outsideTags(kept, t.inNormalForm(spans, raw, kept)))
	}
	return replace(kept, spans, t.keys[0].tag)
}

// inNormalForm appends the places in kept of the secrets of raw, ignoring case. It is
// needed because the normal form may spell a secret so that no rule matches it. For
// example, it has a host in lower case.
func (s *Scrubber) inNormalForm(spans []span, raw, kept string) []span {
	low, seen := foldASCII(kept), make(map[string]bool)
	j := job{left: maxWork}
	for range maxRounds {
		for _, sp := range s.once(nil, raw, s.prefilter.scan(raw), &j) {
			secret := foldASCII(raw[sp.start:sp.end])
			if len(secret) < minSecret || seen[secret] {
				continue
			}
			if seen[secret] = true; sp.kind == KindUnread || len(seen)*len(kept) > 8*maxWork {
				return []span{{0, len(kept), KindUnread}}
			}
			spans = appendAll(spans, low, secret, sp.kind)
		}
		next, _, changed := unescape(raw, nil)
		if !changed {
			break
		}
		raw = next
	}
	return spans
}

func appendAll(spans []span, text, secret, kind string) []span {
	for from := 0; ; {
		i := strings.Index(text[from:], secret)
		if i < 0 {
			return spans
		}
		spans = append(spans, span{from + i, from + i + len(secret), kind})
		from += i + len(secret)
	}
}

// foldASCII returns s with ASCII letters in lower case. The length stays the same.
func foldASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// dropEncodedQuery cuts s at an encoded ? or # if an assignment follows.
func dropEncodedQuery(s string) string {
	for i := 0; ; i++ {
		next := strings.IndexByte(s[i:], '%')
		if next < 0 {
			return s
		}
		i += next
		if c := hexAt(s, i+1)<<4 | hexAt(s, i+2); c != '?' && c != '#' {
			continue
		}
		if rest := s[i:]; strings.Contains(rest, "=") || strings.Contains(rest, "%3D") ||
			strings.Contains(rest, "%3d") {
			return s[:i]
		}
	}
}

// dropParameters drops the parameters of s's path segments. In a connection string, or after
// the name of a credential, a parameter can contain slashes. There the whole rest of s is
// dropped.
func dropParameters(s string) string {
	var b strings.Builder
	rest := 0
	for _, m := range parameter.FindAllStringIndex(s, -1) {
		b.WriteString(s[rest:m[0]])
		if strings.HasPrefix(s, "jdbc:") || anyNamesCredential(s[m[0]:m[1]]) {
			return b.String()
		}
		rest = m[1]
	}
	return b.String() + s[rest:]
}

var (
	parameter     = regexp.MustCompile(`(?:;|%3[Bb])[^/=]*(?:=|%3[Dd])[^/]*`)
	parameterName = regexp.MustCompile(`(?:;|%3[Bb])([^/=;%]*)`)
)

func anyNamesCredential(parameters string) bool {
	return slices.ContainsFunc(parameterName.FindAllStringSubmatch(parameters, -1), func(m []string) bool {
		return namesCredential(m[1])
	})
}

// pathUserinfo returns the places in s's path between a colon and an @ without a version
// after it.
func pathUserinfo(s string) []span {
	path := 0
	if _, rest, ok := strings.Cut(s, "://"); ok {
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return nil
		}
		path = len(s) - len(rest) + slash
	}
	var spans []span
	for _, m := range anyUserinfo.FindAllStringSubmatchIndex(s[path:], -1) {
		spans = append(spans, span{path + m[2], path + m[3], KindUserinfo})
	}
	return outsideTags(s, onlyUserinfo(spans, s))
}

var anyUserinfo = regexp.MustCompile(`([^\s/@:]+:[^\s@]*[^\s/@])(?:@|%40)`)
