// Package engine decides whether an automated agent's action may proceed.
//
// It is pure: it has no I/O, no clock and no globals, and imports only the packages below it. A
// policy version compiles once into a [Policy], and an organization's active rules compile into a
// [RuleSet]. [Evaluate] runs both over one [Intent]. It reports the decision and every finding.
// Every check runs, and the most restrictive outcome wins:
//
//	deny > approval_required > allow
//
// Errors never allow. A condition that is an error counts as a match if its rule denies or
// asks for approval, and as no match if its rule allows. A resource without a single
// meaning is refused before any check reads it.
//
// The checks are in checks.go, the forms of conditions are in package condition, and the readings
// of a resource are in package resource.
package engine
