package workspace

const (
	// maxReads bounds how often lists of several pages are read until they stay the same: a
	// rule whose priority changes meanwhile can be on no page.
	maxReads = 5
)
