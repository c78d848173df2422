package storage

import "time"

// The limits that those who read and write a store share, each with its reason.
const (
	// MaxBody is how many bytes the longest body of a request has: a batch of 100
	// intents of some 40 KB, or a list of 10,000 values of some 400. No row has more
	// than twice as many.
	MaxBody = 4 << 20
	// MaxAge is how long caches are trusted without proof that no change was missed: see
	// [Documents.FreshFor]. Backends rely on it when they give up a handle.
	MaxAge = 2 * time.Second
	// MaxPage is how many rows a page of a list has at most.
	MaxPage = 500
)

// LimitError reports that a plan's limit on stored documents is reached.
type LimitError struct {
	// What is the meter's name, such as "agents"; Limit is its limit.
	What  string
	Limit int
}

// Error implements error.
func (e *LimitError) Error() string { return "the plan's limit of " + e.What + " is reached" }
