package ledger

// The limits of this package, each with its reason.
const (
	// maxCommit bounds a batch, of decisions or of changes, so that the first of a
	// backlog doesn't wait for the last.
	maxCommit = 1024
)
