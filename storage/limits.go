package storage

import "time"

// Limits that the readers and the writers of a store share.
const (
	// MaxBody is the length of the longest request body in bytes: a batch of 100 intents of
	// 40 KB, or a list of 10,000 values of 400 bytes. A row is at most twice as long.
	MaxBody = 4 << 20
	// MaxAge is how long caches are trusted without proof that no change was missed: see
	// [Documents.FreshFor]. Backends rely on it when they give up a handle.
	MaxAge = 2 * time.Second
	// MaxPage is the largest number of rows in a page of a list.
	MaxPage = 500
)

// LimitError reports that a plan's limit on stored documents is reached.
type LimitError struct {
	// What names the meter, such as "agents". Limit is its limit.
	What  string
	Limit int
}

// Error implements error.
func (e *LimitError) Error() string { return "the plan's limit of " + e.What + " is reached" }
