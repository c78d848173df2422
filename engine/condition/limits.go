package condition

// The bounds of what a condition is asked about, in bytes and counts. They bound what
// an evaluation costs, and are those of the documents: see package engine.
const (
	MaxOrganizationID = 128
	MaxAgentID        = 256
	MaxActionType     = 128
	MaxResource       = 4096
	MaxMetadataKeys   = 64
	MaxMetadataKey    = 128
	MaxMetadataValue  = 4096
	maxTime           = 64 // of RFC 3339, with digits beyond nanoseconds

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
	// maxNodes is how many comparisons and combinations it has.
	maxNodes = 1000
	// maxMistakes is how many mistakes in it are reported.
	maxMistakes = 10
	// MaxInstructions is how many instructions its regular expressions compile to
	// together, counted for every metadata key that one is run for. RE2 takes time
	// linear in them and in the text.
	MaxInstructions = 1000
	// maxSpellings is how many globs without alternatives its globs stand for: a glob
	// is compiled in each of its spellings, which makes a short condition large.
	maxSpellings = 1000
	// maxDigits is how many digits a decimal has on each side of its point: far more
	// than any amount, and OPA compares such numbers exactly.
	maxDigits = 40
	// maxChoice bounds the condition of a choice in CEL, which is written twice:
	// choices within the conditions of others would grow exponentially.
	maxChoice = 128
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
