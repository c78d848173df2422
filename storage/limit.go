package storage

// LimitError reports that a plan's limit on stored documents is reached.
type LimitError struct {
	// What is the meter's name, such as "agents"; Limit is its limit.
	What  string
	Limit int
}

// Error implements error.
func (e *LimitError) Error() string { return "the plan's limit of " + e.What + " is reached" }
