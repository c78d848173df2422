package api

// The limits that no deployment sets; [Limits] and [RateLimits] are those that it does.
// docs/configuration.md lists what a caller can meet.
const (
	// maxBatch is how many intents a batch may have.
	maxBatch = 100
	// maxExports bounds the exports under way, which each take a megabyte and may
	// last as long as their reader likes. One organization has a sixteenth of them.
	maxExports = 64
	// maxReads is how many times a page of the history asks the store, which each
	// time may skip some hundreds of rows, to find what its filter selects.
	maxReads = 200
	// maxWait is for how many seconds a look-up of an approval waits for a verdict: below
	// what proxies take for a connection that is idle.
	maxWait = 60
	// maxPolls bounds the look-ups that wait for a verdict, which take some megabytes of
	// goroutines. One organization has a quarter of them.
	maxPolls = 2048
)
