package embedded

// The limits of this package, each with its reason.
const (
	// maxMeters is how many meters without held places are kept: about two megabytes.
	maxMeters = 10_000
)
