package engine

// The size limits of what writ accepts beside those of an intent, which are package
// condition's: in bytes and counts. [ActionPolicy.Validate] and [Rule.Validate] hold
// them.
const (
	// MaxSetting is the greatest number that people set: the priority of a rule, a rate,
	// megabytes, the N of a share 1/N.
	MaxSetting = 1_000_000
	// MaxReason is in characters.
	MaxReason = 500
	// MaxListValues is how many values a list has, each of at most [condition.MaxLabel]
	// bytes.
	MaxListValues = 10_000
	// MaxSessionSeconds is how long a session lasts at most: a week.
	MaxSessionSeconds = 7 * 24 * 60 * 60
)
