package core

// The limits of this package, each with its reason.
const (
	// maxReasons and maxReason bound what an answer holds. A rule's reason, with its name,
	// has at most some 800 characters.
	maxReasons = 64
	maxReason  = 2048
	// maxAnswer is how many bytes an answer may have.
	maxAnswer = 64 << 10
)
