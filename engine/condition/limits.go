package condition

// The bounds of what a condition is asked about, in bytes and counts. They bound what
// an evaluation costs, and are those of the documents: see package engine.
const (
	MaxName         = 128  // of an organization id, an action type, a metadata key or a time
	MaxLabel        = 256  // of an agent id, a rule's name and whatever else people call something
	MaxText         = 4096 // of a resource, a metadata value, a rule's action or its description
	MaxMetadataKeys = 64

	// MaxInteger is the greatest integer that every JSON reader keeps exact
	// (RFC 8785 relies on it): 2^53-1.
	MaxInteger = 1<<53 - 1
)

// The limits of one condition.
const (
	// MaxCondition is its size in bytes.
	MaxCondition = 16 << 10
	// maxDepth is the depth of its JSON, and of the lists and maps within each other
	// of its CEL, whose type check takes time cubic in it.
	maxDepth = 32
	// MaxEntries is how many entries of one kind it has: comparisons and combinations,
	// instructions that its regular expressions compile to, and globs without
	// alternatives that its globs stand for. RE2 takes time linear in its instructions
	// and in the text, so they are counted for every metadata key that an expression is
	// run for. A glob is compiled in each of its spellings, which makes a short condition
	// large. A list of a policy has as many entries at most.
	MaxEntries = 1000
	// MaxMistakes is how many mistakes of one kind in a document, a condition or a body
	// are named, so that the answer does not outgrow it.
	MaxMistakes = 50
	// maxDigits is how many digits a decimal has on each side of its point: far more
	// than any amount, and OPA compares such numbers exactly.
	maxDigits = 40
	// maxChoice bounds the condition of a choice in CEL, which is written twice:
	// choices within the conditions of others would grow exponentially.
	maxChoice = 128
	// maxCases bounds what a proof looks at: in how many cases a condition is true. Each
	// is of 64 comparisons on average at most. What is beyond is not looked at.
	maxCases = 32
	// maxCost bounds what an expression in CEL costs in the worst case, in CEL's cost
	// units, for an intent at its size limits: roughly one unit per operation or per
	// ten characters looked at. It is checked when the rule is created, so that
	// nothing has to be counted while it runs.
	maxCost = 100_000
)

// maxWork is how much all conditions of one evaluation do together, in steps, however
// many rules and readings of the resource there are: a condition that would exceed it
// is an error. What one condition does is bounded when its rule is created, but a
// hundred of the most expensive took fifteen seconds.
//
// A step is an instruction of a regular expression for one character, 64 places of a
// glob for one character, one of CEL's cost units, or a byte that a function in Rego
// makes: some 8 ns. The budget covers the most expensive allowed regex on the longest
// resource, four readings, and 5,000 ordinary ones on an ordinary resource. Steps are
// counted rather than timed, so that the same evaluation always decides the same.
const maxWork = 1 << 24
