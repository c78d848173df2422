package main

import "time"

// The limits of this package, each with its reason.
const (
	// maxPlanLimit and maxRetentionDays bound a plan. No history is older than a century.
	maxPlanLimit     = 1_000_000_000_000
	maxRetentionDays = 36_500
	// maxCacheMB is a TiB: no machine has more to spare, and its bytes fit an int64.
	maxCacheMB = 1 << 20
	// maxOneIn is the N of the smallest share: one decision in a year of thirty a second.
	maxOneIn = 1_000_000_000
	// maxWait is the longest that a server may ask a verb to wait.
	maxWait = 5 * time.Minute
)
