package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
)

// words has the word that writ uses for each common word, without case and punctuation.
var words = map[string]string{
	"denied": "deny", "forbid": "deny", "forbidden": "deny", "reject": "deny", "refuse": "deny", "disallow": "deny",
	"allowed": "allow", "permit": "allow", "permitted": "allow", "accept": "allow",
	"needsapproval": "approval_required", "askforapproval": "approval_required", "ask": "approval_required",
	"review": "approval_required", "escalate": "approval_required", "approval": "approval_required",
	"enabled": "active", "on": "active", "paused": "suspended", "inactive": "suspended", "deleted": "revoked",
	"off": "disabled",
	"and": "all", "or": "any", "none": "not", "is": "eq", "equals": "eq",
	"above": "gt", "after": "gt", "below": "lt", "before": "lt",
	"context": "metadata", "amount": "cost.amount_minor", "price": "cost.amount_minor", "currency": "cost.currency",
	"message": "reason", "why": "reason", "action": "action_type", "enable": "isActive", "timestamp": "issued_at",
	"now": "decided_at", "today": "decided_at", "currenttime": "decided_at",
	"len": "size", "length": "size", "tolower": "lowerAscii", "lower": "lowerAscii", "lowercase": "lowerAscii",
	"toupper": "upperAscii", "upper": "upperAscii", "regex": "matches", "match": "matches", "like": "glob",
	"includes": "contains", "hasprefix": "startsWith", "hassuffix": "endsWith", "float": "double", "str": "string",
	"exist": "has", "isset": "has",
}

// Meant returns the name that an author most likely meant by word, or "". The name differs from
// word in case or punctuation or by a typing error, contains word, or is a synonym. Each of names
// may have other spellings after it, separated by spaces.
func Meant(word string, names []string) string {
	if len(word) > MaxName {
		return ""
	}
	plain := letters(word)
	synonym, known := words[plain]
	best, least := "", 1+max(min(len(plain)-3, 2), len(plain)/3)
	part := ""
	for _, name := range names {
		shown, _, _ := strings.Cut(name, " ")
		for spelling := range strings.FieldsSeq(name) {
			other := letters(spelling)
			if spelling == word || plain != "" && (other == plain || known && other == letters(synonym)) {
				return shown
			}
			if part == "" && len(plain) > 3 && (strings.HasPrefix(other, plain) || strings.HasSuffix(other, plain)) {
				part = shown
			}
			if d := levenshtein.ComputeDistance(plain, other); plain != "" && d < least {
				best, least = shown, d
			}
		}
	}
	return cmp.Or(part, best)
}

// letters returns the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

const didYouMean = "did you mean "

// unknownKey refuses a member of a match object that names no field.
func (p *parser) unknownKey(m jsonMember, err error) *Node {
	if meant := combinationMeant(m); meant != "" {
		return p.misnamed(m.value.at, "unknown key %q: %s%q?", m.name, didYouMean, meant)
	}
	if strings.Contains(err.Error(), didYouMean) {
		return p.misnamed(m.value.at, "%v", err)
	}
	return p.misnamed(m.value.at, "%v; %s", err, forms)
}

// combinationMeant returns the combination that the author most likely meant by the name of m.
func combinationMeant(m jsonMember) string {
	names := map[string][2]string{"and": {"$and", "all"}, "or": {"$or", "any"}, "nor": {"$nor", "not"},
		"not": {"$not", "not"}}
	meant := names[strings.ToLower(m.name)]
	if len(m.value.items) > 0 && isTree(m.value.items[0]) || isTree(m.value) {
		return meant[1]
	}
	return meant[0]
}

// flattened returns the members of a sub-document, written as fields.
func flattened(sub jsonMember) string {
	all := make([]string, len(sub.value.members))
	for i, m := range sub.value.members {
		value := "…"
		switch m.value.kind {
		case '"':
			value = Quote(m.value.text)
		case '0':
			value = m.value.text
		}
		all[i] = Quote(sub.name+"."+m.name) + ": " + value
	}
	return strings.Join(all, ", ")
}

func unknownOperator(name string, ofTrees bool) string {
	var all []string // each with its symbol and its name in the other form
	for s := range spellings {
		symbol := table[s.op].symbol
		if s.negated {
			symbol = "!" + strings.TrimPrefix(symbol, "=")
		}
		words := append(slices.Clip(s.names), symbol)
		for other := range spellings {
			if other.op == s.op && other.negated == s.negated {
				words = append(words, other.names...)
			}
		}
		if s.ofTrees == ofTrees {
			all = append(all, strings.Join(words, " "))
		}
	}
	names := operatorNames(ofTrees)
	if !ofTrees {
		names = append(names, "$not")
	}
	last := len(names) - 1
	want := fmt.Sprintf("want one of %s or %s", strings.Join(names[:last], ", "), names[last])
	if meant := Meant(name, all); meant != "" {
		return fmt.Sprintf("unknown operator %q: %s%s? %s", name, didYouMean, meant, want)
	}
	return fmt.Sprintf("unknown operator %q: %s", name, want)
}
