package engine

import (
	"errors"
	"fmt"
	"strings"
)

// A rule's condition is a JSON object in exactly one of four forms.
//
//	condition = match | tree | {"cel": string} | {"rego": string}
//
//	match     = {}                                always matches
//	          | {member, …}                       every member must hold
//	member    = field: expect
//	          | "$and" | "$or" | "$nor": [match, …]
//	          | "$not": match
//	expect    = string                            equal; a glob where it contains a "*"
//	          | number                            equal
//	          | {op: operand, …}                  every one must hold
//	op        = "$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte"     one constant
//	          | "$in" | "$nin"                    a list of constants
//	          | "$exists"                         true or false
//	          | "$glob"                           a glob or a list of globs, any of which fits
//	          | "$regex"                          an RE2 expression, found anywhere
//	          | "$not"                            {op: operand, …}
//	          | "$every" | "$some"                a list of constants, or {op: operand, …}: of the items
//	          | "$size"                           an integer, or {op: operand, …}: how many items
//
//	tree      = {"all": [tree, …]} | {"any": [tree, …]} | {"not": tree} | leaf
//	leaf      = {"field": field, "op": name, "value": operand}
//	            "fact" and "operator" are accepted for "field" and "op"
//	name      = "eq" | "equal" | "ne" | "notEqual" | "gt" | "greaterThan"
//	          | "gte" | "greaterThanInclusive" | "lt" | "lessThan"
//	          | "lte" | "lessThanInclusive" | "in" | "nin" | "notIn"
//	          | "exists" | "glob" | "regex" | "every" | "some" | "size"
//	          | "contains" | "doesNotContain" | "startsWith" | "endsWith"
//
//	field     = "action_type" | "resource" | "agent_id" | "policy_id"
//	          | "intent_id" | "issued_at" | "cost" | "cost.amount_minor"
//	          | "cost.currency" | "metadata" | "metadata." key
//	            each also with the prefix "intent."
//	          | "agent.id" | "agent.status"
//	          | "policy.policy_id" | "policy.version" | "policy.status"
//	          | "policy.agent_id" | "policy.organization_id"
//
// cost.amount_minor and policy.version are integers, issued_at is an RFC 3339
// time and compared as one, cost and metadata can only be asked whether they
// exist, and everything else is a string, metadata included. agent.status is
// active, disabled or unregistered. Everything after "metadata." is one key.
// Strings are ordered by their bytes.
//
// A metadata value that is compared with a number is read as a decimal: an
// optional sign, digits, and behind a point digits, at most 40 on each side. Where
// it is none the comparison is an error. To order a metadata value by a string that
// is a number is refused, because it must have been meant as one.
//
// $every, $some and $size look at a metadata value as a list: a JSON array of
// strings, else what is between its commas; items are trimmed, and empty ones
// dropped. $every holds where there is an item and each is in the operand, or
// satisfies its operators; $some where one does.
//
// A comparison with a field that the intent lacks is false, so that its
// negation ($ne, $nin, $not, $nor and their like) is true, as in MongoDB.
//
// A resource equals a constant as that is written and as its normal form: the
// constant https://EXAMPLE.com means https://example.com/ too. In any other
// comparison, and in CEL and Rego, constants are taken as they are written.
//
// A glob is a resource's glob ([CompileGlobs]), an action type's where the field
// is action_type (a "*" alone matches all) and otherwise one whose "*" stops at
// a "/". In comparisons for equality that spell out their operator, `*` is an
// ordinary character; where the field is one that never contains it, such as
// the resource, it is refused there, because it can only be meant as a glob.
//
// A CEL expression is a bool over the same fields, all with their prefix:
// intent.cost.amount_minor, intent.metadata.env or intent.metadata["env"],
// agent.status. A field that the intent lacks is an error, unless has() or `in`
// was asked before. items(s) and decimal_compare(s, t) read metadata values as
// lists and decimals.
//
// A condition that ends in an error is taken both ways, and the stricter outcome
// holds: it matches where its rule denies, does not where it allows, and where it
// asks for approval it does so without lifting the deny of a lower rule.
//
// A Rego source is the body of a rule, or a module whose match is asked, over
// input.intent, input.agent and input.policy.
//
// For example
//
//	{"action_type": "deploy", "resource": "prod/**",
//	 "cost.amount_minor": {"$gt": 5000}, "metadata.env": {"$in": ["prod", "dr"]}}
//
// matches an intent that has a cost above 5000 minor units, and is run as
//
//	intent.action_type == "deploy" && resource_glob("prod/**", intent.resource) &&
//	has(intent.cost) && intent.cost.amount_minor > 5000 &&
//	"env" in intent.metadata && intent.metadata["env"] in ["prod", "dr"]

// The limits of a condition: its size in bytes, the depth of its JSON, and the
// comparisons and combinations in it.
const (
	MaxCondition      = 16 << 10
	maxConditionDepth = 32
	maxConditionNodes = 1000
)

// The limits of all patterns of a condition together. RE2 takes time linear in
// the text and in the instructions, which count for every metadata key that the
// expression is run for. A glob with alternatives is compiled in each of their
// spellings, which makes a short condition large. What all conditions of an
// evaluation do together is bounded besides: see maxWork.
const (
	maxRegexProgram   = 1000
	maxSpellingsTotal = 1000
)

// forms is what an author who wrote something else is shown.
const forms = `a condition is a JSON object in one of four forms: ` +
	`a match object such as {"action_type":"deploy","cost.amount_minor":{"$gt":5000}}; ` +
	`a tree such as {"all":[{"field":"action_type","op":"eq","value":"deploy"},{"not":{"field":"cost","op":"exists","value":true}}]}; ` +
	`{"cel":"intent.cost.amount_minor > 5000"}; ` +
	`or {"rego":"input.intent.cost.amount_minor > 5000"}`

// condition is a condition that can be asked.
type condition struct {
	// holds and fails are true exactly of the intents of which the condition is
	// true and false: what is neither is an error. Both are opaque in form 4 and
	// wherever CEL says more than the tree can.
	holds, fails *node
	// demands are what every intent has of which the condition is not false.
	demands []demand
	// readsResource says whether the condition has to be asked for every reading.
	readsResource bool
	// cel is the condition as it runs, empty in form 4.
	cel     string
	program *program
	// patternBytes is about what the compiled patterns take.
	patternBytes int
	// source and rego are set in form 4 alone.
	source string
	rego   RegoCondition
}

// conditionError collects what is wrong with a condition.
type conditionError struct {
	fields []FieldError
}

// maxConditionErrors is how many mistakes of one condition are reported.
const maxConditionErrors = 10

// add reports a mistake at the JSON pointer at.
func (e *conditionError) add(at, format string, args ...any) {
	if len(e.fields) == maxConditionErrors {
		return
	}
	message := fmt.Sprintf(format, args...)
	if at != "" {
		message = "at " + at + ": " + message
	}
	e.fields = append(e.fields, FieldError{Field: "condition", Message: message})
}

func (e *conditionError) err() error {
	if len(e.fields) == 0 {
		return nil
	}
	return &InvalidError{Fields: e.fields}
}

func badCondition(format string, args ...any) error {
	var e conditionError
	e.add("", format, args...)
	return e.err()
}

// compileCondition returns the condition that doc is, or an *InvalidError.
func compileCondition(doc string, o Options) (*condition, error) {
	root, err := decodeCondition(doc)
	if err != nil {
		return nil, err
	}
	c, err := compileForm(root, o)
	if err != nil {
		return nil, err
	}
	c.demands = demandsOf(c.fails, false)
	return c, nil
}

func compileForm(root jsonNode, o Options) (*condition, error) {
	for _, form := range []string{"cel", "rego"} {
		source, ok := root.member(form)
		switch {
		case !ok:
		case len(root.members) > 1:
			return nil, badCondition("%q stands alone, no other key may be beside it; %s", form, forms)
		case source.kind != '"' || strings.TrimSpace(source.text) == "":
			return nil, badCondition("at /%s: want a string that holds the source, got %s", form, source.describe())
		case form == "cel":
			return compileCEL(source.text, o)
		default:
			return compileRego(source.text, o)
		}
	}
	tree, patterns, err := parseCondition(root, o.stored)
	if err != nil {
		return nil, err
	}
	return compileTree(tree.reading(o.outcome != Allow), patterns)
}

// compileTree compiles a condition of form 1 or 2.
func compileTree(tree *node, patterns budget) (*condition, error) {
	outcome := outcomes(tree)
	c := &condition{
		patternBytes: patterns.bytes,
		holds:        outcome.holds, fails: outcome.fails, cel: renderCEL(tree),
		readsResource: tree.some((*node).readsResource),
	}
	env, err := standardEnv()
	if err != nil {
		return nil, err
	}
	if c.program, err = env.trees.compile(c.cel); err != nil {
		return nil, badCondition("%v", err)
	}
	return c, nil
}

func compileRego(source string, o Options) (*condition, error) {
	if o.CompileRego == nil {
		return nil, badCondition("at /rego: conditions in Rego are not supported here")
	}
	rego, err := o.CompileRego(source)
	if err != nil {
		return nil, badCondition("at /rego: %v", err)
	}
	if !o.stored {
		if err := rego.Review().Misordered; err != nil {
			return nil, badCondition("at /rego: %v", err)
		}
	}
	return &condition{holds: opaque(), fails: opaque(), readsResource: true, source: source, rego: rego}, nil
}

// errNotRendered says that a condition has no rendering in the language asked.
var errNotRendered = errors.New("its CEL uses what has no equal in Rego (such as a comparison of two fields, or a macro): write the condition in Rego to export it")
