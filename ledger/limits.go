package ledger

// The limits of this package, each with its reason.
const (
	// maxCommit bounds a batch, so that the first of a backlog doesn't wait for the
	// last.
	maxCommit = 1024
	// maxChanges bounds how many changes SignChanges commits at a time.
	maxChanges = 256
)
