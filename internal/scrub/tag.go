package scrub

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// tagBytes is how much of an HMAC a tag has. Among 2^32 values the chance
	// that any two have the same tag is one in 100,000.
	tagBytes  = 10
	tagDigits = tagBytes * 8 / 5
)

// Tagger scrubs identities without merging two of them: it replaces each secret by a
// tag. See the package documentation. It is safe for concurrent use.
type Tagger struct {
	*Scrubber
	keys []tagKey
}

type tagKey []byte

func (k tagKey) tag(kind, secret string) string {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(secret))
	return "[" + kind + ":" + base32.StdEncoding.EncodeToString(mac.Sum(nil)[:tagBytes]) + "]"
}

// Tagger returns a Tagger that writes tags under the first key and knows those of
// the others.
func (s *Scrubber) Tagger(keys ...[]byte) (*Tagger, error) {
	if len(keys) == 0 {
		return nil, errors.New("no scrub key: identities are never stored without one")
	}
	t := &Tagger{Scrubber: s}
	for i, key := range keys {
		if len(key) < sha256.Size { // RFC 2104 discourages keys shorter than the hash's output
			return nil, fmt.Errorf("scrub key %d has %d bytes: want at least %d", i+1, len(key), sha256.Size)
		}
		t.keys = append(t.keys, slices.Clone(key))
	}
	return t, nil
}

// Identity returns text with a tag in the place of each secret. If neither of two texts
// is [Tagger.Tagged], their results are equal only if the texts are equal. It returns
// text itself, allocating nothing, if nothing in it looks like a secret.
func (t *Tagger) Identity(text string) string { return t.identity(text, t.keys[0]) }

// Spellings returns every spelling of text that the history may have: text itself, which
// is also how a row shows it, and its identity under each key.
func (t *Tagger) Spellings(text string) []string {
	all := []string{text}
	for _, key := range t.keys {
		if s := t.identity(text, key); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Tagged reports whether text contains a tag. Such an identity is refused: it could equal
// another's.
func (t *Tagger) Tagged(text string) bool {
	_, _, found := nextTag(text, 0)
	return found
}

func (t *Tagger) identity(text string, key tagKey) string {
	if !t.prefilter.suspect(text) {
		return text
	}
	return settle(text, key, func(text string) string {
		j := job{left: maxWork}
		return replace(text, t.find(text, &j), key.tag)
	})
}

// settle applies pass to text until it changes nothing, so that scrubbing is idempotent.
func settle(text string, key tagKey, pass func(string) string) string {
	for range maxRounds {
		next := pass(text)
		if next == text {
			return text
		}
		text = next
	}
	return key.tag(KindUnread, text)
}

// nextTag returns the bounds of the first tag of text at or after from.
func nextTag(text string, from int) (start, end int, found bool) {
	for {
		open := strings.IndexByte(text[from:], '[')
		if open < 0 {
			return 0, 0, false
		}
		start = from + open
		if n := tagAt(text[start:]); n > 0 {
			return start, start + n, true
		}
		from = start + 1
	}
}

// tagAt returns the length of the tag that s begins with, 0 if there is none.
func tagAt(s string) int {
	colon := 1
	for colon < len(s) && isKindByte(s[colon]) {
		colon++
	}
	n := colon + 1 + tagDigits + 1
	if colon == 1 || len(s) < n || s[colon] != ':' || s[n-1] != ']' {
		return 0
	}
	for _, c := range []byte(s[colon+1 : n-1]) {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return 0
		}
	}
	return n
}

func isKindByte(b byte) bool { return b >= 'a' && b <= 'z' || isDecimal(b) || b == '-' }

// outsideTags drops the spans within a tag: its kind and digits look like secrets to some
// rules. It keeps card numbers, because a caller could hide one in the form of a tag.
func outsideTags(text string, spans []span) []span {
	if len(spans) == 0 || strings.IndexByte(text, '[') < 0 {
		return spans
	}
	for from := 0; ; {
		start, end, found := nextTag(text, from)
		if !found {
			return spans
		}
		spans = slices.DeleteFunc(spans, func(sp span) bool {
			return sp.start >= start && sp.end <= end && sp.kind != KindCard
		})
		from = end
	}
}
