package mongodb

// The limits of this package, each with its reason.
const (
	// maxScanned is how many rows a page looks at if no index serves its filter: some
	// 10 ms of the server.
	maxScanned = 4096
	// maxInsert is the length in bytes at which an insert command gets no further row.
	// The server takes 16 MiB, and no row has more than twice the 4 MiB of a request.
	maxInsert = 4 << 20
	// maxIntent is the length of the longest key of an intent: two UUIDs of 36 bytes with a
	// byte between.
	maxIntent = 80
)
