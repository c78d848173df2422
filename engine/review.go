package engine

import (
	"fmt"
	"strings"

	"writ/engine/condition"
)

// RegoReview is what a condition in Rego says that its author may not mean.
type RegoReview struct {
	// Misordered says where a metadata value is ordered as text that must have been
	// meant as a number. It is nil where none is.
	Misordered error
	// ExceptsResource is set where the condition holds because a comparison with
	// the resource does not.
	ExceptsResource bool
	// Dodges are the metadata keys without which the condition does not hold,
	// whatever is behind them, unless it asks for the key itself. They are sorted.
	Dodges []string
}

// Warnings says of a rule that denies or asks for approval where it may do other
// than its author means. Nothing of it makes the rule invalid.
func (c *CompiledRule) Warnings() []FieldError {
	if c.err != nil || c.outcome == Allow {
		return nil
	}
	const notThen = "the rule does not match then"
	does := map[Decision]string{Deny: "denies", ApprovalRequired: "asks for approval"}[c.outcome]
	var w problems
	excepts := func(language string) {
		w.add("condition", "compares intent.resource in %s for what it is not: the condition is asked once for each reading of the resource, "+
			"and one without the query, or without a slash at the end, is another text, so the rule also applies to what it excepts; "+
			`write a match object such as {"resource":{"$ne":"…"}}`, language)
	}
	rests := func(keys []string, then, instead string) {
		for _, key := range keys {
			if !strings.HasPrefix(key, FactPrefix) {
				w.add("condition", "rests on metadata.%s, which the caller may leave out: %s; %s; or rest on a key that begins with %s",
					key, then, fmt.Sprintf(instead, condition.Quote(key)), FactPrefix)
			}
		}
	}
	if c.rego != nil {
		review := c.rego.Review()
		if review.ExceptsResource {
			excepts("Rego")
		}
		rests(review.Dodges, notThen, "if that is meant, write input.intent.metadata[%[1]s] in a line of its own; if not, a second match with `not` before it")
		return w.fields
	}
	review := condition.ReviewOf(c.rule.Condition)
	if review.ExceptsResource {
		excepts("CEL")
	}
	rests(review.Unguarded, "that is an error, with which the rule "+does,
		"if that is meant, write !(%[1]s in intent.metadata) || …; if not, %[1]s in intent.metadata && …")
	rests(review.Dodges, notThen, `if that is meant, compare %[1]s with {"$exists":true} as well; if not, with {"$exists":false} in an $or`)
	return w.fields
}
