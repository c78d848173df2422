package main

import "time"

// The limits of this package, each with its reason.
const (
	// maxWait is the longest that a server may ask a verb to wait.
	maxWait = 5 * time.Minute
)
