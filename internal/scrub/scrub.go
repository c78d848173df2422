package scrub

import (
	"maps"
	"slices"
	"strings"
)

// The kinds of secrets that gitleaks has no rule for.
const (
	KindCard     = "card-number"
	KindEmail    = "email-address"
	KindUserinfo = "userinfo"            // a password before the @ of an address
	KindAssigned = "assigned-credential" // the value in password=value
	KindNamed    = "named-credential"    // a value under a key that names a credential
	KindUnread   = "unreadable"          // text that is escaped too often or takes too much work to read
)

// The limits of this package.
const (
	// minSecret is the length of the shortest secret: shorter ones occur by chance in
	// ordinary words. A contextual rule requires more after its operator, or
	// TestSuspect_HasNoFalseNegatives fails.
	minSecret = 4
	// maxWork bounds the bytes that all rules together read of a text, or of the
	// values of an intent, in all their readings. A document may take eight times as
	// much, and so may the search for a resource's secrets in its normal form. Only text
	// that is made to keep the service busy needs more.
	maxWork = 32 << 10
	// maxRounds limits how often a text is read. The first round reads the text unchanged.
	// Each further round decodes the escapes once more. maxRounds also limits how often an
	// identity is scrubbed. Scrubbing stops at a round that finds nothing. So an ordinary
	// identity takes one round, and an identity with a secret takes two.
	maxRounds = 4
)

// Scrubber finds and replaces secrets. It is safe for concurrent use.
type Scrubber struct {
	prefilter prefilter
	rules     []*rule
}

// New returns a Scrubber with the detector's rules. New takes milliseconds: make one Scrubber and
// share it. An error means that the rules cannot be read.
func New() (*Scrubber, error) {
	rules, err := loadRules()
	if err != nil {
		return nil, err
	}
	return &Scrubber{prefilter: newPrefilter(rules), rules: rules}, nil
}

// Text returns s with each secret replaced by its kind in brackets. It returns s
// itself, allocating nothing, if nothing in s looks like a secret.
func (s *Scrubber) Text(text string) string {
	j := job{left: maxWork}
	return replace(text, s.find(text, &j), redacted)
}

// Values returns the values of an intent's metadata as they may be stored. Rules that
// need context see key and value. A value is replaced as a whole if its key names a
// credential. One bound covers the work of all values.
func (s *Scrubber) Values(metadata map[string]string) map[string]string {
	j := job{left: maxWork}
	kept := make(map[string]string, len(metadata))
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		kept[key] = s.value(key, metadata[key], &j)
	}
	return kept
}

func (s *Scrubber) value(key, value string, j *job) string {
	if value == "" {
		return value
	}
	if s.credential(key) {
		return redacted(KindNamed, value)
	}
	return replace(value, s.inPair(key, value, j), redacted)
}

// credential reports whether key names a credential, as written or unescaped.
func (s *Scrubber) credential(key string) bool {
	if !s.prefilter.scan(key).escaped {
		return namesCredential(key)
	}
	plain, _, _ := unescape(key, nil)
	return namesCredential(key) || namesCredential(plain)
}

// Find returns the kind of the first secret in text.
func (s *Scrubber) Find(text string) (kind string, found bool) {
	j := job{left: maxWork}
	return first(s.find(text, &j))
}

// Search returns a function like [Scrubber.Find] for the values of one document. Rules that
// need context see the name of a value. Unlike [Scrubber.Values] it judges a value by its own
// form, so that a document may mention that there is a password. It ignores e-mail
// addresses and card numbers, because documents may name people. One bound covers the
// work of all values. The function is not safe for concurrent use.
func (s *Scrubber) Search() func(key, value string) (kind string, found bool) {
	j := job{left: 8 * maxWork, document: true}
	return func(key, value string) (string, bool) { return first(s.inPair(key, value, &j)) }
}

func first(spans []span) (string, bool) {
	if len(spans) == 0 {
		return "", false
	}
	return spans[0].kind, true
}

// inPair returns the secrets in value. Rules that need context see key too.
func (s *Scrubber) inPair(key, value string, j *job) []span {
	spans := s.find(value, j)
	if hits := s.prefilter.scanPair(key, value); hits.any() {
		const assign = ` = "`
		from := len(key) + len(assign)
		for _, sp := range s.read(key+assign+value+`"`, hits, j) {
			sp.start, sp.end = max(sp.start-from, 0), min(sp.end-from, len(value))
			if sp.start < sp.end {
				spans = append(spans, sp)
			}
		}
	}
	return merge(outsideTags(value, spans))
}

// find returns the secrets in text, in order and without overlap.
func (s *Scrubber) find(text string, j *job) []span {
	hits := s.prefilter.scan(text)
	if !hits.any() {
		return nil
	}
	return merge(outsideTags(text, s.read(text, hits, j)))
}

// read returns the secrets in all readings of text. hits is the result of the pass over
// text.
func (s *Scrubber) read(text string, hits hits, j *job) []span {
	spans := s.once(nil, text, hits, j)
	if hits.escaped {
		spans = s.decoded(spans, text, j)
	}
	return spans
}

// once appends the secrets in text, plain or encoded, without decoding escapes.
func (s *Scrubber) once(spans []span, text string, hits hits, j *job) []span {
	if !hits.rules.empty() {
		spans = s.match(spans, text, hits, j)
	}
	if hits.encoded && !j.inside {
		spans = s.encoded(spans, text, j)
	}
	return spans
}

// job has the budget and the mode that all texts of a call share.
type job struct {
	left     int  // bytes that rules may read
	document bool // the texts are a document's, which is refused if it has a secret
	inside   bool // the text was encoded; nothing in it is decoded again
}

// match appends the matches of the rules in hits and charges the bytes that they read to
// j. A text that exceeds the budget is a secret as a whole.
func (s *Scrubber) match(spans []span, text string, hits hits, j *job) []span {
	read := hits.rules.len() * len(text)
	if read > j.left {
		return append(spans, span{0, len(text), KindUnread})
	}
	j.left -= read
	for i, r := range s.rules {
		if hits.rules.has(i) && (!j.document || !r.redacts) {
			spans = r.append(spans, text)
		}
	}
	return spans
}

type span struct {
	start, end int
	kind       string
}

// merge sorts spans and joins those that overlap under the kind of the first.
func merge(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.start - b.start })
	kept := spans[:1]
	for _, sp := range spans[1:] {
		if last := &kept[len(kept)-1]; sp.start < last.end {
			last.end = max(last.end, sp.end)
			continue
		}
		kept = append(kept, sp)
	}
	return kept
}

// replace returns text with each secret replaced by hide's result.
func replace(text string, spans []span, hide func(kind, secret string) string) string {
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	rest := 0
	for _, sp := range spans {
		b.WriteString(text[rest:sp.start])
		b.WriteString(hide(sp.kind, text[sp.start:sp.end]))
		rest = sp.end
	}
	b.WriteString(text[rest:])
	return b.String()
}

// redactedMark begins the text that replaces a secret outside of identities.
const redactedMark = "[redacted:"

func redacted(kind, _ string) string { return redactedMark + kind + "]" }
