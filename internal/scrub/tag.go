package scrub

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// tagBytes is how much of an HMAC a tag has. Among 2^32 values the chance
	// that any two have the same tag is one in 100,000.
	tagBytes  = 10
	tagDigits = tagBytes * 8 / 5
)

// Tagger scrubs identities so that different identities stay different. It replaces each
// secret by a tag: see the package documentation. It is safe for concurrent use.
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

// Tagger returns a Tagger that writes tags under the first key and finds tags of all keys.
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

// Name is [Tagger.Identity] of folded, which is the folded form of raw. If folding hides a secret of
// raw, Name replaces all of folded by a tag.
func (t *Tagger) Name(raw, folded string) string {
	kept := t.Identity(folded)
	if raw == folded {
		return kept
	}
	j := job{left: maxWork}
	secrets := t.find(raw, &j)
	if len(secrets) == 0 {
		return kept
	}
	j = job{left: maxWork}
	shown := t.find(folded, &j)
	isHidden := func(sp span) bool {
		return !slices.ContainsFunc(shown, func(by span) bool { return by.start <= sp.start && sp.end <= by.end })
	}
	for _, secret := range secrets {
		in := appendAll(nil, folded, foldASCII(raw[secret.start:secret.end]), secret.kind)
		if len(in) == 0 || slices.ContainsFunc(in, isHidden) {
			return t.keys[0].tag(KindUnread, folded)
		}
	}
	return kept
}

// Spellings returns every spelling of text that the history may have: text itself, which may
// be a tag that a row shows, and its identity and its [Tagger.Name] under each key.
func (t *Tagger) Spellings(text string) []string {
	all := []string{text}
	if hits := t.prefilter.scan(text); !hits.any() { // then it has no secret, and hides none of another spelling
		return all
	}
	tagged := t.Tagged(text)
	for _, key := range t.keys {
		if s := t.identity(text, key); !slices.Contains(all, s) {
			all = append(all, s)
		}
		if s := key.tag(KindUnread, text); !tagged && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Stored returns the spellings of text that may stand outside of the history, too: those that
// cannot show a secret. If a and b are spellings of one text, Stored of a and Stored of b have one in
// common.
func (t *Tagger) Stored(text string) []string {
	all := t.Spellings(text)
	if len(all) > 1 && !t.Tagged(text) {
		return all[1:]
	}
	return all
}

// Tagged reports whether text contains a tag. Callers refuse such an identity, because it
// could equal the scrubbed form of another identity.
func (t *Tagger) Tagged(text string) bool { return tagForm.MatchString(text) }

// HasMark reports whether text contains a tag of any [Tagger], or the mark that replaces a secret of a
// text that identifies nobody.
func HasMark(text string) bool {
	return strings.IndexByte(text, '[') >= 0 && (tagForm.MatchString(text) || strings.Contains(text, redactedMark))
}

func (t *Tagger) identity(text string, key tagKey) string {
	return untilStable(text, key, func(text string) string {
		j := job{left: maxWork}
		return replace(text, t.find(text, &j), key.tag)
	})
}

// untilStable applies pass to text again and again until pass changes nothing. So
// scrubbing is idempotent.
func untilStable(text string, key tagKey, pass func(string) string) string {
	for range maxRounds {
		next := pass(text)
		if next == text {
			return text
		}
		text = next
	}
	return key.tag(KindUnread, text)
}

// tagForm matches a tag.
var tagForm = regexp.MustCompile(fmt.Sprintf(`\[[a-z0-9-]+:[A-Z2-7]{%d}\]`, tagDigits))

// outsideTags drops the spans within a tag, because its kind and digits look like secrets to
// some rules. It keeps the spans of card numbers, because a caller could hide a card
// number in the form of a tag.
func outsideTags(text string, spans []span) []span {
	if len(spans) == 0 || strings.IndexByte(text, '[') < 0 {
		return spans
	}
	for _, tag := range tagForm.FindAllStringIndex(text, -1) {
		spans = slices.DeleteFunc(spans, func(sp span) bool {
			return sp.start >= tag[0] && sp.end <= tag[1] && sp.kind != KindCard
		})
	}
	return spans
}
