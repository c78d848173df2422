package mongodb

// The limits of this package, each with its reason.
const (
	// maxIntent is the length of the longest key of an intent: two UUIDs of 36 bytes with a
	// byte between.
	maxIntent = 80
)
