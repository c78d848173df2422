// Package engine decides whether an automated agent's action may proceed.
//
// It is the domain of writ and it is pure: no I/O, no clock, no globals, and
// of writ's packages only those below it. A policy version compiles once into a [Policy]
// program and an organization's active rules into a [RuleSet]; [Evaluate] runs
// both over one [Intent] and reports the decision together with every finding
// that led to it. Every check runs, the most restrictive outcome wins:
//
//	deny > approval_required > allow
//
// Whatever cannot be evaluated never allows: a condition that errors counts as
// matching when its rule denies or asks for approval and as not matching when
// it allows, and a resource without a single meaning is refused before any
// check sees it.
//
// The checks are in checks.go, the forms of conditions in package condition, the readings
// of a resource in package resource.
package engine
