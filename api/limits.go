package api

// These limits are the same in every deployment. A deployment sets the others with [Limits] and [RateLimits].
// docs/configuration.md lists the limits that a caller can meet.
const (
	// maxBatch is the greatest number of intents in a batch.
	maxBatch = 100
	// maxExports bounds the exports that run at the same time. Each export takes a megabyte and lasts until its client
	// has read it. One organization has at most a sixteenth of these exports.
	maxExports = 64
	// maxReads bounds how many times the store is asked for one page of the history. Each time it may skip some
	// hundreds of rows that the filter does not select.
	maxReads = 200
	// maxWait is the longest wait, in seconds, of a look-up of an approval for its verdict. Proxies close a connection
	// that is idle for longer.
	maxWait = 60
	// maxPolls bounds the look-ups that wait for a verdict. Together they take some megabytes of goroutines. One
	// organization has at most a quarter of them.
	maxPolls = 2048
)
