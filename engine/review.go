package engine

import (
	"fmt"
	"strings"

	"writ/engine/condition"
)

// Review returns what the condition says that its author may not mean.
func (c *CompiledRule) Review() condition.Review {
	switch {
	case c.err != nil:
		return condition.Review{}
	case c.rego != nil:
		return c.rego.Review()
	}
	return condition.ReviewOf(c.rule.Condition)
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
	rests := func(names []string, then, instead string) {
		for _, name := range names {
			if key, ok := strings.CutPrefix(name, "metadata."); ok && !strings.HasPrefix(key, FactPrefix) {
				w.add("condition", "rests on metadata.%s, which the caller may leave out: %s; %s; or rest on a key that begins with %s",
					key, then, fmt.Sprintf(instead, condition.Quote(key)), FactPrefix)
			}
		}
	}
	review := c.Review()
	if c.rego != nil {
		if review.ExceptsResource {
			excepts("Rego")
		}
		rests(review.Dodges, notThen, "if that is meant, write input.intent.metadata[%[1]s] in a line of its own; if not, a second match with `not` before it")
		return w.fields
	}
	if review.ExceptsResource {
		excepts("CEL")
	}
	rests(review.Unguarded, "that is an error, with which the rule "+does,
		"if that is meant, write !(%[1]s in intent.metadata) || …; if not, %[1]s in intent.metadata && …")
	rests(review.Dodges, notThen, `if that is meant, compare %[1]s with {"$exists":true} as well; if not, with {"$exists":false} in an $or`)
	return w.fields
}
