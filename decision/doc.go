// Package decision takes intents to the decisions that stand. Every way in
// calls it; it knows nothing of HTTP.
//
//	plan ─▶ reserve ─▶ load ─▶ evaluate, or ask a core ─▶ commit
//
// The reservation is made before anything is looked up, because its time is the
// decision's: an intent decided after a kill switch was thrown was evaluated
// under it. The answer is what the commit returns, never this evaluation's
// result. So a replay gives the first answer whatever has become of the policy,
// the rules, the agent and the meter since, and is not metered again.
//
// The one thing that must still exist for a replay is the policy that the
// intent names; no version is ever removed, so a policy that an intent was
// decided under is always found. A policy that is not found is no decision, is
// not recorded, and leaves the intent id free for when it is registered.
//
// Intents that are decided together are one commit: one write and one
// signature. [Pipeline.DecideAll] allows all of them or none.
package decision
