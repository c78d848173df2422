package mongodb

// The limits of this package, each with its reason.
const (
	// maxScanned is how many rows a page looks at if no index serves its filter: some
	// 10 ms of the server.
	maxScanned = 4096
	// maxIntent is the length of the longest key of an intent: two UUIDs of 36 bytes with a
	// byte between.
	maxIntent = 80
)
