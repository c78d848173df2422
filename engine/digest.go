package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Digest identifies what decides an intent: a policy version, the active rules in deciding order, the
// lists and libraries that they use, and [Semantics]. An external core that was exported from other
// documents has another digest. Only the members without an effect on a decision are left out: the policy's
// updated_at, and all members of a rule except the four below.
//
// The digest of a JSON text is "sha256:" and the SHA-256 of the text in lower-case hexadecimal. The
// texts have no white space, and strings have the escapes of RFC 8785. Digest is the digest of
//
//	[semantics, policy, digest of the rules]
//
// policy is the policy with its members in the order of [ActionPolicy], without empty lists except
// allowed_action_types, and with the updated_at "0001-01-01T00:00:00Z". The digest of the rules is
// the digest of
//
//	[[[name, condition, action, priority], …], [[list, [text, …]], …]]
//
// The lists are sorted by name, and their texts are sorted. A list that is a document has the document in
// the place of the texts. A list that is missing is null. If the rules use
// libraries, [[library, [[file, source], …]], …] follows the lists, sorted by name and by file. A library
// that is missing is null. For example, without rules it is the digest of [[],[]]:
// sha256:643d5437104296e21d906ecb15b2c96ad278f20cfc4af53b12bb6069bd853726.
func Digest(p *ActionPolicy, rs *RuleSet) (string, error) {
	rules, err := rs.Digest()
	if err != nil {
		return "", err
	}
	doc := *p
	doc.UpdatedAt = time.Time{}
	for _, list := range doc.lists() {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return digestOf([]any{Semantics, &doc, rules})
}

// Digest returns the digest of the rules and of the lists and libraries that they use: see [Digest]. If
// [Options.KeepDigest] was set, it returns the digest that the set keeps. A nil set has no rules.
func (rs *RuleSet) Digest() (string, error) {
	if rs == nil {
		rs = &RuleSet{}
	}
	if rs.digest != "" {
		return rs.digest, nil
	}
	rules, lists := [][]any{}, [][]any{}
	for _, c := range rs.rules {
		rules = append(rules, []any{c.rule.Name, c.rule.Condition, c.rule.Action, c.rule.Priority})
	}
	for _, name := range rs.ListNames() {
		var content any
		if l := rs.lists[name]; l != nil {
			content = jsontext.Value(l.Document())
		}
		lists = append(lists, []any{name, content})
	}
	if libraries := rs.usedLibraries(); len(libraries) > 0 {
		return digestOf([]any{rules, lists, libraries})
	}
	return digestOf([]any{rules, lists})
}

// usedLibraries returns the libraries that the rules import, directly and through others, as [Digest]
// has them.
func (rs *RuleSet) usedLibraries() [][]any {
	stored := map[string]any{}
	if rs.libraries != nil {
		for _, l := range rs.libraries.Documents() {
			files := [][]string{}
			for _, file := range l.Files() {
				files = append(files, []string{file, l.Modules[file]})
			}
			stored[l.Name] = files
		}
	}
	used := map[string]bool{}
	for _, c := range rs.rules {
		for _, name := range c.Libraries() {
			used[name] = true
		}
	}
	var all [][]any
	for _, name := range slices.Sorted(maps.Keys(used)) {
		all = append(all, []any{name, stored[name]})
	}
	return all
}

func digestOf(v any) (string, error) {
	h := sha256.New()
	if err := json.MarshalWrite(h, v); err != nil {
		return "", fmt.Errorf("encoding what decides: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
