package condition

// The bounds of an intent and of documents, as numbers of bytes or of entries. They bound the cost
// of an evaluation. Package engine has further bounds that conditions do not need.
const (
	MaxName         = 128  // of an organization id, an action type, a metadata key or a time
	MaxLabel        = 256  // of an agent id, a rule's name and other names that people choose
	MaxText         = 4096 // of a resource, a metadata value, a rule's action or its description
	MaxMetadataKeys = 64

	// MaxInteger is 2^53-1, the greatest integer that every JSON reader keeps exact. RFC 8785
	// relies on that.
	MaxInteger = 1<<53 - 1
)

// The limits of one condition.
const (
	// MaxCondition is the greatest size of a condition in bytes.
	MaxCondition = 16 << 10
	// maxDepth is the greatest nesting of a condition's JSON, and of the lists and maps of its
	// CEL. CEL's type check takes time cubic in the nesting.
	maxDepth = 32
	// MaxEntries is the limit of each kind of entry in a condition: comparisons and combinations,
	// and spellings of its globs. A glob is compiled in each spelling. A policy's list has the same
	// limit. In CEL the condition c of a choice c ? a : b may have only an eighth of it. The tree of
	// the choice contains c twice, so without this limit the trees of nested choices would grow
	// exponentially.
	MaxEntries = 1000
	// MaxInstructions is the limit of the instructions of a condition's regular expressions. RE2
	// takes time linear in instructions and text, so a regular expression counts once for each
	// metadata key for which it runs.
	MaxInstructions = 700
	// MaxMistakes is the greatest number of mistakes of one kind that an error names, for a
	// document, a condition or a body. Without it the answer could be larger than the document.
	MaxMistakes = 50
	// maxDigits is the greatest number of digits of a decimal on each side of its point. It is far
	// more than any amount needs, and OPA compares such numbers exactly.
	maxDigits = 40
	// maxCost is the greatest cost of a CEL expression for the largest intent, in CEL's cost
	// units: roughly one per operation or per ten characters. It is checked when the rule is
	// created, so that no cost is counted while the expression runs.
	maxCost = 100_000
)

// maxWork is the budget of all conditions of one evaluation together, in steps. It does not grow
// with the number of rules or readings of the resource. A condition that would exceed the budget
// is an error. Each condition is bounded when its rule is created, but a hundred of the most
// expensive conditions took fifteen seconds.
//
// A step is an instruction of a regular expression for one character, 64 places of a glob for one
// character, or a twelfth of one of CEL's cost units. In Rego it is a byte that a function makes.
// Reading and comparing values in Rego is charged in the same unit. A step takes some
// 8 ns, so that the slowest conditions take some 100 ms of the processor. Two tests search for them.
// The budget covers the most expensive allowed regex on the longest resource with four readings.
// It also covers 5,000 ordinary regexes on an ordinary resource.
// Steps are counted rather than timed, so that the same evaluation always decides the same.
const maxWork = 11 << 20
