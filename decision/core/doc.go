// Package core lets an external evaluation core make decisions. A core is a server with OPA's
// REST data API, such as an OPA that has loaded the output of `writ rego --core`.
//
// # The question
//
// For each decision, writ sends a POST of {"input": …} to the configured document. The query is
// strict-builtin-errors=true, so that a rule that fails is an error. Without this query, a rule
// that fails would count as a rule that does not match. The input holds
//
//	policy      the newest version of the policy, as it was registered
//	intent      the ActionIntent, with its metadata
//	decided_at  the time of the decision, in UTC and RFC 3339, as the row has it
//	agent       {"id", "status": "active" | "disabled" | "unregistered", "called", "names"}: called
//	            has the agent's names as sent and registered, names these and their folded forms
//	digest      identifies the policy, the organization's active rules and the lists that they use:
//	            see [engine.Digest]
//	rules       the rules in deciding order, only if the deployment says --core-rules
//
// The input also holds members that are not in the contract. A core needs them to decide as
// writ does:
//
//	readings                    {"blocked": […], "allowed": […], "stops"}, as [rego.Lower] says
//	values                      how metadata values are read, by their keys, as [rego.Lower] says;
//	                            absent if the intent has no metadata
//	organization                {"stopped": bool}
//	usage                       {"exceeded": bool}
//	require_registered_agents   bool
//	approval                    {"approval_id", "status"}, if the intent is decided under an approval; a decision that
//	                            the core holds is allowed if exactly that was approved, whatever the core makes of it
//	counters                    the count of each counter of the rules, by the counter's key; null if the counter
//	                            does not count the intent; absent if there are no counters
//	derived_from                {"counters": {"action_type", "agent_id", "cost"}}, the members of the intent from which
//	                            counters are derived; absent if there are no counters
//	rules_revision              the revision of the store's last write to the rules or to their lists
//	semantics                   [engine.Semantics]: what policies and rules mean
//
// # The answer
//
// A decision is a 200 of type application/json with this form:
//
//	{"result": {
//	  "decision": "allow", "reasons": ["policy.allowed: version 3 of the policy allows it"],
//	  "policy_version": 3, "rules_revision": 57
//	}}
//
// All four members are required. A decision_id of OPA's own may stand beside result. Nothing
// else may stand there: writ could not honour a member that it does not know, such as an
// obligation. policy_version and rules_revision name the versions under which the core decided.
// They must be equal to policy.version and rules_revision of the input. Otherwise the decision
// is [Undefined].
//
// # Cores that hold policies
//
// These two numbers do not identify the content that a core holds. The same numbers can stand
// for other content in another store, or in a store that was restored from a backup. The rules'
// revision also grows without a change of the rules. So a core that has its own policy and
// rules must compare the digest of its documents with the digest in the input before it answers.
// With another digest it must not answer. The modules of `writ rego --core` are undefined then. A
// core that holds no rules needs --core-rules: each question then has all of them, and takes the
// longer the more there are.
//
// # Reasons
//
// A reason is a code, a colon, a space and a sentence. writ's own codes must agree with the
// decision: an allow for "resource.blocked: …" is not a decision. Other codes, in lower case
// with dots, may come with any decision.
//
// # Failing
//
// Everything else is an [*Error]. writ never allows an intent because of an error. After five
// failures in a row, writ does not ask the core for a second. During that time every decision
// fails at once. Then writ asks one question, and the answer determines whether it asks the
// core again. Two errors do not count as failures: an undefined document, and an error of a
// policy or a rule itself. An organization can cause these two errors, and it must not be able
// to stop the decisions of others.
package core
