// Package condition compiles the conditions of rules and asks them about intents.
//
// A condition is a JSON object in one of four forms. Match objects and trees parse into one
// tree ([Node]). [Plan] makes a [Program] from the tree. CEL plans an expression in CEL. A
// comparison of a field with a constant has the same predicates in both. Package rego runs a
// condition in Rego. The tree is the source of the rendering in CEL ([Node.CEL]), of the rendering
// in Rego (package rego) and of the index of rules ([Demand]). One table has all facts about
// fields (field.go), another all facts about operators (operator.go).
//
//	c, err := condition.Compile(doc, condition.Options{Side: resource.ForBlock}) // *Error: where, what
//	f := condition.NewFrame()                                           // one for each evaluation
//	f.SetText(condition.ActionType, "deploy")
//	ok, err := c.Program.Eval(f)
//
// # The four forms
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
//	          | "$in" | "$nin"                    a list of constants, or {"list": name}
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
// cost.amount_minor and policy.version are integers. issued_at is an RFC 3339 time and is compared
// as a time. cost and metadata can only be tested for existence. Every other field is a string,
// and so is each metadata value. agent.status is active, disabled or unregistered. Everything
// after "metadata." is one key. Strings are ordered by their bytes.
//
// A metadata value that is compared with a number is read as a decimal: an optional sign, digits,
// and optionally a point with digits after it. Each side of the point has at most 40 digits. Any
// other value makes the comparison an error. A condition that orders a metadata value by a string
// that looks like a number is refused: its author meant a number.
//
// {"list": name} is a list that the organization keeps by that name: see [CheckListName].
// The texts of a list are compared byte by byte. A list that does not exist is an error.
//
// $every, $some and $size look at a metadata value as a list: the members of a JSON array of
// strings, or the parts between commas. Items are trimmed, and empty items are dropped. $every
// holds if there is an item and every item is in the operand or satisfies its operators. $some
// holds if one item is in the operand or satisfies its operators.
//
// A comparison with a field that the intent lacks is false. The negation of that comparison ($ne,
// $nin, $not, $nor and their like) is therefore true, as in MongoDB.
//
// A resource equals a constant if it equals the constant as written or the normal form of the
// constant: the constant https://EXAMPLE.com also means https://example.com/. Any other comparison
// takes the constant as written. So do CEL and Rego.
//
// The field decides the kind of a glob. On the resource it is a resource's glob (package glob). On
// action_type it is an action type's glob: a "*" alone matches all. On any other field it is a glob
// whose "*" stops at a "/". If a comparison for equality spells out its operator, `*` is an
// ordinary character. Such a `*` is refused for a field that never contains `*`, such as the
// resource: the author can only mean a glob.
//
// A CEL expression is a bool over the same fields, all with their prefix:
// intent.cost.amount_minor, intent.metadata.env or intent.metadata["env"],
// agent.status. A field that the intent lacks is an error, unless the expression tests it with
// has() or `in` before. items(s) reads a metadata value as a list. decimal_compare(s, t) compares
// metadata values as decimals.
//
// If a condition ends in an error, the stricter of its two outcomes holds. A rule that denies
// matches. A rule that allows does not match. A rule that asks for approval asks for it, and does
// not lift the deny of a lower rule.
//
// A Rego source is the body of a rule, or a module that defines match. It reads input.intent,
// input.agent and input.policy. A list that the source names is the set input.lists.name.
//
// For example
//
//	{"action_type": "deploy", "resource": "prod/**",
//	 "cost.amount_minor": {"$gt": 5000}, "metadata.env": {"$in": ["prod", "dr"]}}
//
// matches only intents with a cost above 5000 minor units, and is run as
//
//	intent.action_type == "deploy" && resource_glob("prod/**", intent.resource) &&
//	has(intent.cost) && intent.cost.amount_minor > 5000 &&
//	"env" in intent.metadata && intent.metadata["env"] in ["prod", "dr"]
//
// # Functions in CEL
//
// glob(patterns, s) is a plain glob with "/" as the delimiter. resource_glob(patterns, s) reads
// each pattern as the readers of a resource do: use it on intent.resource.
// action_matches(patterns, s) is the taxonomy's wildcard. action_denied(patterns, s) is the
// wildcard of denied types: only the checks have it. patterns is a constant string or list of
// strings. If patterns is not constant, the expression does not compile. resource_any(op, values)
// is true if the comparison op holds for one reading of the resource that a block looks at.
// resource_every(op, values) is true if op holds for all readings that an allowance has to cover.
// x in list(name) looks for the string x in the list called name, a constant. items(s) is s as a
// list of strings, as $every reads it. decimal_compare(s, t) is -1, 0 or 1. It is an error if s or
// t is not a decimal.
//
// intent.resource is one reading at a time: see [Frame.SetReading].
//
// A comparison of a variable (or intent.metadata.key) with a constant, `in` over
// a constant list, glob and friends, startsWith, endsWith, contains and matches
// with a constant run without allocating. Any other expression boxes its operands.
package condition
