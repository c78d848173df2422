package document

const (
	// maxNodes bounds what a file's aliases can multiply to.
	maxNodes = 1_000_000
	// MaxLine is how long a line may be that holds a whole object or array, and how many
	// characters of a longer one are shown. An object or array that is put on one line
	// has at most four fifths of it.
	MaxLine = 100
	// maxPasses bounds how often a file is formatted until nothing changes.
	maxPasses = 5
)
