package engine

// The size limits of what writ accepts beside those of an intent, which are package
// condition's: in bytes and counts. [ActionPolicy.Validate] and [Rule.Validate] hold
// them.
const (
	MaxRuleName        = 200
	MaxRuleDescription = 2000
	MaxPriority        = 1_000_000
	// MaxReason is in characters.
	MaxReason = 500
	// maxMistakes is how many mistakes of one document are named.
	maxMistakes = 50
)
