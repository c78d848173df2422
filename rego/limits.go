package rego

import "time"

// DefaultTimeout bounds the conditions of one evaluation together. Steps bound them first;
// the timeout ends what steps do not count. A condition takes some 20 µs, so that a busy
// machine does not reach it.
const DefaultTimeout = 250 * time.Millisecond

// QueryTimeout bounds a [Query] for one intent. It is longer than [DefaultTimeout], because
// no request waits for a query.
const QueryTimeout = 2 * time.Second

const (
	// maxGrowth is how many times larger than what it is given a value that a
	// condition builds may become: a0 := [x, x], a1 := [a0, a0], … doubles with
	// every line, and so does x*x. Loops over constant ranges multiply likewise.
	maxGrowth = 1 << 12
	// splitGrowth is how many times more memory a text takes when each character is a
	// value of its own.
	splitGrowth = 16
	// stepsPerExpr is what evaluating an expression takes, in the engine's steps:
	// one to two microseconds with what OPA allocates for it.
	stepsPerExpr = 256
	// termBytes is what a value takes beyond its text: its term and its place.
	termBytes = 96
	// maxNames bounds how many names are followed one after another.
	maxNames = 8
)
