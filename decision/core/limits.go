package core

// The limits of this package, each with its reason.
const (
	// maxReasons is how many reasons an answer has, each of at most [condition.MaxText]
	// bytes. A rule's reason, with its name, has some 800 characters.
	maxReasons = 64
	// maxAnswer is how many bytes an answer may have.
	maxAnswer = 64 << 10
)
