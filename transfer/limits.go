package transfer

// The limits of this package, each with its reason.
const (
	// maxLine bounds a line. A row holds no more than twice the 4 MiB of a request.
	maxLine = 32 << 20
)
