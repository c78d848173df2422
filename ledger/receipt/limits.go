package receipt

// The limits of this package, each with its reason.
const (
	// maxSafeInt is the largest integer n for which JSON's numbers hold n and n+1.
	maxSafeInt = 1<<53 - 1
	// maxKeyID bounds a key id in bytes; a thumbprint has 43.
	maxKeyID = 256
)
