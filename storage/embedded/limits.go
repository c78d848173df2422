package embedded

// The limits of this package, each with its reason.
const (
	// maxSkipped is how many rows a page reads that its filter does not select: less than
	// a millisecond, during which the caller keeps its slot.
	maxSkipped = 256
	// maxMeters is how many meters without held places are kept: about two megabytes.
	maxMeters = 10_000
)
