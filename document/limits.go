package document

const (
	// maxNodes bounds what a file's aliases can multiply to.
	maxNodes = 1_000_000
	// maxSource is how many characters of a line are shown.
	maxSource = 140
	// maxLine is how long a line may be that holds a whole object or array.
	maxLine = 100
	// maxInline is how long an object or array may be that is put on one line.
	maxInline = 80
	// maxPasses bounds how often a file is formatted until nothing changes.
	maxPasses = 5
)
