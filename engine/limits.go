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
	// MaxListValues is how many values a list has, each of at most [condition.MaxLabel] bytes, and
	// MaxListBytes how much all lists of an organization take together, as
	// [List.Size] counts: they are kept with its rules.
	MaxListValues = 10_000
	MaxListBytes  = 8 << 20
	// MaxSessionSeconds is how long a session lasts at most: a week. MaxSessions is how many
	// an organization has that are not swept yet.
	MaxSessionSeconds = 7 * 24 * 60 * 60
	MaxSessions       = 100_000
)
