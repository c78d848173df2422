// Package core has decisions made by an external evaluation core: a server with
// OPA's REST data API, such as an OPA that holds what `writ rego --core` wrote.
//
// # The question
//
// Each decision is a POST of {"input": …} to the configured document, with the
// query strict-builtin-errors=true, so that a rule that fails is an error and
// not a rule that does not match. The input holds
//
//	policy    the newest version of the policy, as it was registered
//	intent    the ActionIntent, with its metadata
//	agent     {"id", "status": "active" | "disabled" | "unregistered"}
//	rules     the organization's active rules in deciding order
//
// and, beyond the contract, what a core needs to decide as writ does:
//
//	readings                    {"blocked": […], "allowed": […], "stops"}, as [rego.Lower] says
//	usage                       {"exceeded": bool}
//	require_registered_agents   bool
//	approval                    {"approval_id", "status"}, where the intent is decided under one: what the core
//	                            holds is allowed if exactly that was approved, whatever it makes of it
//	counters                    what each counter of the rules has come to, by its key, null where it does not count
//	                            the intent; absent where there are none
//	rules_revision              the write of the store that left the rules as they are
//	semantics                   [engine.Semantics]: what policies and rules mean
//
// # The answer
//
// Only this is a decision, as a 200 of type application/json:
//
//	{"result": {
//	  "decision": "allow", "reasons": ["policy.allowed: version 3 of the policy allows it"],
//	  "policy_version": 3, "rules_revision": 57
//	}}
//
// The four members are required, a decision_id of OPA's own may stand beside
// result, and nothing else may: what writ does not know, such as an obligation, it
// could not honour. policy_version and rules_revision are those that the core
// decided under. They must be policy.version and rules_revision of the input: a
// decision under others is [Undefined].
//
// # Cores that hold policies
//
// These two numbers do not identify what a core holds. They repeat with other
// content where a store was restored from a backup and in another store, and the
// rules' revision grows without a change of the rules. So a core that has its own
// policy and rules must compare them with the input's before it answers, and
// semantics with the number of the writ that exported them. The modules of
// `writ rego --core` do, member by member.
//
// # Reasons
//
// A reason is a code, a colon, a space and a sentence. writ's own
// codes must agree with the decision: an allow for "resource.blocked: …" is no
// decision. Other codes, in lower case with dots, may come with any decision.
//
// # Failing
//
// Everything else is an [*Error], and nothing is ever approved for one. A core
// that fails five times in a row is left alone for a second:
// meanwhile every decision fails at once. Then one question
// tries it out, and its answer decides for the others. Neither an undefined
// document nor an error of a policy's or a rule's own counts as a failure: an
// organization that brings them about must not stop the others' decisions.
package core
