package condition

// The bounds of an intent and of documents, in bytes and counts. They bound the cost of an
// evaluation. Package engine has those that conditions do not see.
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
	// maxDepth is how deep its JSON, and the lists and maps of its CEL, are nested. CEL's
	// type check takes time cubic in it.
	maxDepth = 32
	// MaxEntries is the limit of each kind of entry in a condition: comparisons and
	// combinations, instructions of its regular expressions, and spellings of its globs. RE2
	// takes time linear in instructions and text, so a regular expression counts once for each
	// metadata key for which it runs. A glob is compiled in each spelling. A policy's list has
	// the same limit. The condition of a choice in CEL has an eighth of it: the tree of a
	// choice has it twice, so that nested choices would grow exponentially.
	MaxEntries = 1000
	// MaxMistakes is how many mistakes of one kind in a document, a condition or a body
	// are named, so that the answer does not outgrow it.
	MaxMistakes = 50
	// maxDigits is how many digits a decimal has on each side of its point: far more
	// than any amount, and OPA compares such numbers exactly.
	maxDigits = 40
	// maxCost is the cost of an expression in CEL for the largest intent, in CEL's cost
	// units: roughly one per operation or per ten characters. It is checked when the rule
	// is created, so that nothing is counted while it runs.
	maxCost = 100_000
)

// maxWork is the budget of all conditions of one evaluation together, in steps, however
// many rules and readings of the resource there are. A condition that would exceed it is
// an error. Each condition is bounded when its rule is created, but a hundred of the most
// expensive took fifteen seconds.
//
// A step is an instruction of a regular expression for one character, 64 places of a
// glob for one character, one of CEL's cost units, or a byte that a function in Rego
// makes: some 8 ns. The budget covers the most expensive allowed regex on the longest
// resource, four readings, and 5,000 ordinary ones on an ordinary resource. Steps are
// counted rather than timed, so that the same evaluation always decides the same.
const maxWork = 1 << 24
