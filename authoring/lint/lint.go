// Package lint warns of valid policies and rules that may not do what their author means.
// docs/lint.md describes each kind of warning, with an example that gets the warning.
//
// Warnings of the kinds shadowed and unreachable are certain: each is proved for every valid
// intent. Not every case can be proved, so the absence of a warning says little. The other warnings
// are advice. A proof holds while the conditions of an intent stay within their budget of work. A
// condition that exceeds the budget is an error, and an error makes the decision stricter.
package lint

// Warning is one warning about a document.
type Warning struct {
	// Field is the field's path, such as "policy.blocked_resource_patterns[2]" or
	// "rules[3].condition".
	Field string `json:"field"`
	// Rule is the name of the warning's [Kind].
	Rule string `json:"rule"`
	// Message says what the document does, in one sentence without a full stop.
	Message string `json:"message"`
	// Instead says what to write instead.
	Instead string `json:"instead"`
}

// Kind is a kind of warning.
type Kind struct {
	// Name identifies the kind. A warning has this name, and a comment uses it to silence the
	// warning. It consists of lower-case letters and hyphens.
	Name string `json:"name"`
	// Warns says in one line what this kind of warning is about.
	Warns string `json:"warns"`
}

// NoRego is the name of the warning about a rule that has no rendering in Rego.
const NoRego = "no-rego"

// The names of the other kinds.
const (
	unguardedKey    = "unguarded-key"
	callerLifts     = "caller-lifts"
	callerTime      = "caller-time"
	liftsUnrelated  = "lifts-unrelated"
	shadowed        = "shadowed"
	unreachable     = "unreachable"
	matchAll        = "match-all"
	regexLike       = "regex-like"
	emptyAllow      = "empty-allow"
	letterCase      = "case"
	stringOrder     = "string-order"
	echoes          = "echoes-metadata"
	duplicate       = "duplicate"
	matchesLittle   = "matches-little"
	exceptsResource = "excepts-resource"
	unknownList     = "unknown-list"
	countsOthers    = "counts-others"
)

// Kinds returns every kind of warning, in the order of the documentation.
func Kinds() []Kind {
	return []Kind{
		{unguardedKey,
			"a deny or an approval rests on a metadata key or a cost that the caller may leave out, and no rule " +
				"says what absence means"},
		{callerLifts, "an allow rests on metadata that is not fact.…: on the agent's own word"},
		{callerTime, "a rule rests on issued_at, which the caller fills in"},
		{liftsUnrelated, "an allow can win over an approval of lower priority with which it shares no field"},
		{shadowed, "a rule can never decide"},
		{unreachable,
			"an action type or a pattern is covered by another entry of its list, or always beaten by the block list"},
		{matchAll, "a list that blocks matches everything"},
		{regexLike, "a glob looks like a regular expression"},
		{emptyAllow, "allowed_action_types is empty, which allows nothing"},
		{letterCase, "a blocked pattern names letters in one case only"},
		{stringOrder, "a text that looks like a number is compared in the order of texts"},
		{echoes, "a reason of a rule in Rego could hold a value of the metadata, so it is left out"},
		{duplicate, "two rules are the same, or have the same id or name"},
		{matchesLittle, "a pattern can match next to nothing"},
		{exceptsResource, "a deny or an approval in CEL or Rego excepts a resource, which its other readings undo"},
		{unknownList, "a rule looks in a list that no document defines"},
		{countsOthers, "a counter may not count all that the rule is about"},
		{NoRego, "a condition in CEL says what Rego cannot, so that no rule of the organization can be exported"},
	}
}

type warnings []Warning

func (w *warnings) add(field, rule, message, instead string) {
	*w = append(*w, Warning{Field: field, Rule: rule, Message: message, Instead: instead})
}
