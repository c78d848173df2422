package rego

import "time"

// DefaultTimeout is how long the conditions of one evaluation may take together.
// They are charged by steps; what is not charged ends here. It leaves room for a
// machine that is busy: a condition takes some 20 µs.
const DefaultTimeout = 250 * time.Millisecond

// QueryTimeout is how long a [Query] may take for an intent. Nobody waits for it to act,
// so that it leaves more room than [DefaultTimeout].
const QueryTimeout = 2 * time.Second

const (
	// maxGrowth is how many times larger than what it is given a value that a
	// condition builds may become: a0 := [x, x], a1 := [a0, a0], … doubles with
	// every line, and so does x*x. Loops over constant ranges multiply likewise.
	maxGrowth = 1 << 12
	// splitGrowth is how many times more memory the characters of a text take as
	// values of their own.
	splitGrowth = 16
	// stepsPerExpr is what evaluating an expression takes, in the engine's steps:
	// one to two microseconds with what OPA allocates for it.
	stepsPerExpr = 256
	// termBytes is what a value takes besides its text: its term and its place.
	termBytes = 96
	// maxNames bounds how many names are followed one after another.
	maxNames = 8
)
