// Package condition compiles the conditions of rules and asks them about intents.
//
// A condition is a JSON object in one of four forms. Match objects and trees parse into one
// tree ([Node]), from which [Plan] makes a [Program]. CEL plans an expression in CEL, with the
// same predicates where a field is compared with a constant. Package rego runs a condition in
// Rego. Both renderings, in CEL ([Node.CEL]) and in Rego (package rego), and the index of
// rules ([Demand]) are made from the tree. All facts about a field are in one table
// (field.go), and about an operator in another (operator.go).
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
// cost.amount_minor and policy.version are integers, issued_at is an RFC 3339
// time and compared as one, cost and metadata can only be asked whether they
// exist, and everything else is a string, metadata included. agent.status is
// active, disabled or unregistered. Everything after "metadata." is one key.
// Strings are ordered by their bytes.
//
// A metadata value that is compared with a number is read as a decimal: an optional sign,
// digits, and behind a point digits, at most 40 on each side. Any other value makes the
// comparison an error. To order a metadata value by a string that looks like a number is
// refused: its author meant a number.
//
// {"list": name} is a list that the organization keeps by that name: see [CheckListName].
// Its texts are compared byte by byte. A list that is not there is an error.
//
// $every, $some and $size look at a metadata value as a list: the members of a JSON array of
// strings, or the parts between commas. Items are trimmed, and empty ones dropped. $every
// holds where there is an item and each is in the operand, or satisfies its operators; $some
// where one does.
//
// A comparison with a field that the intent lacks is false, so that its
// negation ($ne, $nin, $not, $nor and their like) is true, as in MongoDB.
//
// A resource equals a constant as that is written and as its normal form: the
// constant https://EXAMPLE.com means https://example.com/ too. In any other
// comparison, and in CEL and Rego, constants are taken as they are written.
//
// A glob is a resource's glob (package glob), an action type's where the field
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
// A condition that ends in an error is taken both ways, and the stricter outcome holds. A rule
// that denies matches, and a rule that allows does not. A rule that asks for approval does so
// without lifting the deny of a lower rule.
//
// A Rego source is the body of a rule, or a module whose match is asked, over
// input.intent, input.agent and input.policy. A list that it names is the set input.lists.name.
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
//
// # Functions in CEL
//
// glob(patterns, s) is a plain glob with "/" as the delimiter. resource_glob(patterns, s)
// reads each pattern as the readers of a resource do: use it on intent.resource.
// action_matches(patterns, s) is the taxonomy's wildcard. action_denied(patterns, s), which
// only the checks have, is the wildcard of denied types. patterns is a constant string or list
// of strings; otherwise the expression does not compile. resource_any(op, values) is true
// where the comparison op holds of one reading of the resource that a block looks at,
// resource_every(op, values) where it holds of all readings that an allowance has to cover. x
// in list(name) looks for the string x in the list of a constant name. items(s) is s as a list
// of strings, as $every reads it. decimal_compare(s, t) is -1, 0 or 1, and an error where s or
// t is not a decimal.
//
// intent.resource is one reading at a time: see [Frame.SetReading].
//
// A comparison of a variable (or intent.metadata.key) with a constant, `in` over
// a constant list, glob and friends, startsWith, endsWith, contains and matches
// with a constant run without allocating; anything else boxes its operands.
package condition
