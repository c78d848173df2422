package embedded

// The limits of this package, each with its reason.
const (
	// maxSkipped bounds how many rows a page reads that its filter does not select:
	// less than a millisecond, in which the caller can do nothing for others.
	maxSkipped = 256
	// maxMeters bounds the meters without held places, to about two megabytes.
	maxMeters = 10_000
)
