package glob

// The limits of this package, each with its reason.
const (
	// MaxLength is the number of bytes that a pattern may have.
	MaxLength = 1024
	// maxSpellings bounds what one pattern expands to: its alternatives, each
	// as all readers have it.
	maxSpellings = 256
	// maxSpelled bounds the characters that all alternatives of a list have in all of
	// their readings: compiling takes about a microsecond for each. To expand the
	// alternatives of one pattern, half as many are copied at most.
	maxSpelled = 128 << 10
	// maxWildcards bounds wildcards, classes and groups together, and so how deep groups
	// are within each other: the glob library takes time quadratic in their number to
	// compile a pattern.
	maxWildcards = 128
	// maxChain bounds what one text can meet of a list: the places of the compounds
	// whose literal prefixes it can have at once.
	maxChain = 4096
)
