package resource

// The limits of this package, each with its reason.
const (
	// MaxLength is the number of bytes that a resource may have.
	MaxLength = 8192
	// maxHosts bounds a list of hosts. Each is read with the whole path, so that the
	// work grows with their product.
	maxHosts = 64
)
