// Package condition compiles the conditions of rules and evaluates them for intents.
//
// A condition is a JSON object in one of four forms. Match objects and trees parse into one tree
// ([Node]). [Plan] compiles the tree into a [Program]. The CEL library plans an expression in CEL.
// In both cases the same predicates compare a field with a constant. Package rego runs a condition
// in Rego. Three things are made from the tree: the rendering in CEL ([Node.CEL]), the rendering in
// Rego (package rego) and the index of rules ([Demand]). One table has all facts about fields
// (field.go), and another has all facts about operators (operator.go).
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
// {"list": name} is the organization's list with that name: see [CheckListName]. The texts of a
// list are compared byte by byte. If the list does not exist, the comparison is an error.
//
// $every, $some and $size read a metadata value as a list: the members of a JSON array of strings,
// or the parts between commas, semicolons and line ends: see [ReadValue]. Elements are trimmed, and
// empty elements are dropped. $every holds if there is an element and every element is in the
// operand or satisfies its operators. $some holds if at least one element is in the operand or
// satisfies its operators.
//
// An element with an @ has several readings: see [Element]. A comparison whose truth makes the
// outcome milder must be true of all addresses of the element, and no operand with an @ is true of
// anything else. One whose truth makes the outcome stricter is true when it is for one reading. $eq,
// $in and $glob of a whole value, with an @ in their operand, hold for a milder outcome only if the
// value is one address. Operands with an @ are compared with addresses, the domains of both folded.
//
// A comparison is false if the intent lacks the field. The negation of that comparison ($ne, $nin,
// $not, $nor and their like) is therefore true, as in MongoDB.
//
// A resource equals a constant if it equals the constant as written, or the normal form of the
// constant. For example, the constant https://EXAMPLE.com also equals https://example.com/. All
// other comparisons use the constant only as written. CEL and Rego do the same.
//
// The field decides the kind of a glob. On the resource it is a resource's glob (package glob). On
// action_type it is an action type's glob: a "*" that stands by itself matches every action type.
// On any other field it is a glob whose "*" stops at a "/". If a comparison for equality spells
// out its operator, `*` is an ordinary character. For a field that never contains `*`, such as the
// resource, this is refused: the author can only mean a glob.
//
// A CEL expression is a bool over the same fields. Each field has its prefix:
// intent.cost.amount_minor, intent.metadata.env or intent.metadata["env"], agent.status. If the
// intent lacks the field, reading it is an error. To avoid the error, an expression first tests
// the field with has() or `in`. items(s) is the list of the addresses
// in a metadata value, and of its elements that are more than addresses. decimal_compare(s, t)
// compares metadata values as decimals.
//
// If a condition ends in an error, the stricter of its two outcomes holds. A rule that denies
// matches. A rule that allows does not match. A rule that asks for approval asks for it, but a
// lower rule may still deny.
//
// A Rego source is the body of a rule, or a module that defines match. It reads input.intent,
// input.agent and input.policy. The set input.lists.name is the list called name,
// and data.lists.name is the list as a JSON document.
//
// For example
//
//	{"action_type": "deploy", "resource": "prod/**",
//	 "cost.amount_minor": {"$gt": 5000}, "metadata.env": {"$in": ["prod", "dr"]}}
//
// matches only intents with a cost above 5000 minor units. It is run as
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
// intent.resource has the value of one reading at a time: see [Frame.SetReading].
//
// Some comparisons run without allocating. They compare a variable (or intent.metadata.key) with a
// constant, by an operator, by `in` over a constant list, by glob and friends, or by startsWith,
// endsWith, contains and matches. Any other expression boxes its operands.
package condition
