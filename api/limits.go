package api

import "time"

// These limits are equal in every deployment. [Limits] and [RateLimits] are the configurable
// limits. docs/capacity.md lists the limits that a caller can reach.
const (
	// maxBatch is the greatest number of intents in a batch.
	maxBatch = 100
	// maxExports bounds the simultaneous exports. Each export takes a megabyte and lasts until its
	// client has read it. One organization has at most a sixteenth of these exports.
	maxExports = 64
	// maxReads bounds the store reads for one page of the history. Each read may skip 250 rows that the
	// filter does not select, or 4,000 in MongoDB. maxReading ends the page too.
	maxReads   = 40
	maxReading = 100 * time.Millisecond
	// maxWait is the longest time, in seconds, that a look-up of an approval waits for a verdict.
	// Proxies close connections that are idle for longer.
	maxWait = 60
	// maxViewers bounds the streams. An organization may have a quarter of them. Each takes a
	// connection and the rows that its reader has not taken, some 100 KiB.
	maxViewers = 256
	// maxPolls bounds the look-ups that wait for a verdict. Together their goroutines take some
	// megabytes. One organization has at most a quarter of these look-ups.
	maxPolls = 2048
)
