package scrub

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

// rule finds one kind of secret.
type rule struct {
	kind     string
	keywords []string // in lower case; every match contains one
	demands  []demand // every text with a match meets one
	digits   int      // every match contains so many digits in a row; a rule with digits has no keyword
	// contextual says that a keyword comes before the secret, and that one of the
	// operators = > : | ? , is between them.
	contextual bool
	// redacts says that a document with a match is not refused. Either the rule has too
	// many false matches, or it finds identities, which a document may name.
	redacts bool
	entropy float64 // a secret must exceed it
	group   int     // the number of the group that is the secret; 0 is the first group that matched
	allowed []allowlist
	// possible reports whether the expression, which is slow, could match. It may be nil.
	possible func(text string) bool
	// harmless reports whether the match text[start:end] is no secret.
	harmless func(text string, start, end int) bool

	compile func() *regexp.Regexp
	// scan finds matches instead of an expression.
	scan func(text string) []span
}

// newRule returns a rule. Its expression is compiled on first use, because most rules are
// never used.
func newRule(kind, expression string, keywords ...string) (*rule, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the rule %s: %w", kind, err)
	}
	return &rule{
		kind: kind, keywords: keywords, demands: demandsOf(tree),
		compile: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) }),
	}, nil
}

func mustRule(kind, expression string, keywords ...string) *rule {
	r, err := newRule(kind, expression, keywords...)
	if err != nil {
		panic(err)
	}
	return r
}

func (r *rule) append(spans []span, text string) []span {
	if r.scan != nil {
		return append(spans, r.scan(text)...)
	}
	if r.possible != nil && !r.possible(text) {
		return spans
	}
	for _, m := range r.compile().FindAllStringSubmatchIndex(text, -1) {
		start, end := r.secret(m)
		if r.isSecret(text, m, text[start:end]) && (r.harmless == nil || !r.harmless(text, start, end)) {
			spans = append(spans, span{start, end, r.kind})
		}
	}
	return spans
}

func (r *rule) secret(m []int) (start, end int) {
	if r.group > 0 && m[2*r.group] >= 0 {
		return m[2*r.group], m[2*r.group+1]
	}
	for i := 2; r.group == 0 && i < len(m); i += 2 {
		if m[i] >= 0 && m[i] < m[i+1] {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

// isSecret reports whether a match is random enough and on no allowlist.
func (r *rule) isSecret(text string, m []int, secret string) bool {
	if r.entropy > 0 && entropy(secret) <= r.entropy {
		return false
	}
	return !slices.ContainsFunc(r.allowed, func(a allowlist) bool { return a.allows(text, text[m[0]:m[1]], secret) })
}

// allowlist says which matches of a rule are no secrets.
type allowlist struct {
	target      string // of the expressions: "match", "line" or the secret
	expressions []*regexp.Regexp
	stop        map[string][]string // words that no secret contains, by their first stopPrefix bytes
}

const stopPrefix = 3

func (a *allowlist) allows(text, match, secret string) bool {
	target := secret
	switch a.target {
	case "match":
		target = match
	case "line":
		target = text
	}
	if slices.ContainsFunc(a.expressions, func(re *regexp.Regexp) bool { return re.MatchString(target) }) {
		return true
	}
	secret = strings.ToLower(secret)
	for i := range max(len(secret)-stopPrefix+1, 0) {
		for _, word := range a.stop[secret[i:i+stopPrefix]] {
			if strings.HasPrefix(secret[i:], word) {
				return true
			}
		}
	}
	return false
}

// entropy returns Shannon's entropy of s in bits per character.
func entropy(s string) (bits float64) {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
