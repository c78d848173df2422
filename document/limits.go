package document

const (
	// MaxValues is how many values a file has: what its aliases can multiply to.
	MaxValues = 1_000_000
	// MaxLine is how long a line may be that holds a whole object or array, and how many
	// characters of a longer one are shown. An object or array that is put on one line
	// has at most four fifths of it.
	MaxLine = 100
	// MaxPasses is how often something is done over until two results are equal: a file is
	// formatted, or what a server has is read while others change it.
	MaxPasses = 5
)
