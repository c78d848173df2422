package document

const (
	// maxNodes bounds what a file's aliases can multiply to.
	maxNodes = 1_000_000
	// maxSource is how many characters of a line are shown.
	maxSource = 140
)
