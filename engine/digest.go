package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// digestDomain starts what is digested. It changes with whatever changes what a
// policy or a rule of the same text means, so that an external core that holds
// an export of an earlier writ is not asked by this one.
const digestDomain = "writ core 2\n"

// lazyDigest is the digest of what never changes, made when it is first asked for.
type lazyDigest struct {
	once sync.Once
	text string
}

// Digest names what the policy decides by: the document without its UpdatedAt,
// an empty list being the same as none. It is "sha256:" and 64 hex digits, the
// same in every process of a release, and opaque: compare it with another.
func (p *Policy) Digest() string {
	p.digest.once.Do(func() { p.digest.text = DigestPolicy(p.doc) })
	return p.digest.text
}

// DigestPolicy returns the [Policy.Digest] that p has when it is compiled.
func DigestPolicy(p *ActionPolicy) string {
	doc := *p
	doc.UpdatedAt = time.Time{}
	for _, list := range []*[]string{
		&doc.AllowedActionTypes, &doc.DeniedActionTypes, &doc.AllowedResourcePatterns, &doc.BlockedResourcePatterns,
	} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return digestOf("policy", doc)
}

// digestedRule is what of a rule can change a decision or its reasons, besides
// its place: its id and its age only settle that.
type digestedRule struct {
	Name, Condition, Action string
	Priority                int64
}

// Digest names what the active rules decide, in deciding order, as
// [Policy.Digest] names a policy. A nil set has no rules.
func (rs *RuleSet) Digest() string {
	if rs == nil {
		return digestRules(nil)
	}
	rs.digest.once.Do(func() { rs.digest.text = digestRules(rs.rules) })
	return rs.digest.text
}

func digestRules(rules []*CompiledRule) string {
	list := make([]digestedRule, len(rules))
	for i, r := range rules {
		list[i] = digestedRule{r.rule.Name, r.rule.Condition, r.rule.Action, r.rule.Priority}
	}
	return digestOf("rules", list)
}

func digestOf(kind string, v any) string {
	h := sha256.New()
	fmt.Fprint(h, digestDomain, kind, "\n")
	if err := json.MarshalWrite(h, v, json.Deterministic(true)); err != nil {
		// Text that is not UTF-8 is refused wherever documents come in. Without a
		// digest nothing that was exported fits, so nothing is decided.
		return "unknown"
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
