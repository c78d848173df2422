package engine

// The size limits of what writ accepts, in bytes and counts. [Intent.Validate],
// [ActionPolicy.Validate] and [Rule.Validate] hold them, and the cost bound of
// rule conditions relies on them.
const (
	MaxOrganizationID  = 128
	MaxAgentID         = 256
	MaxActionType      = 128
	MaxResource        = 4096
	MaxMetadataKeys    = 64
	MaxMetadataKey     = 128
	MaxMetadataValue   = 4096
	MaxPatterns        = 1000
	MaxRuleName        = 200
	MaxRuleDescription = 2000
	MaxRuleAction      = 4096
	MaxPriority        = 1_000_000

	// MaxInteger is the greatest integer that every JSON reader keeps exact
	// (RFC 8785 relies on it): 2^53-1.
	MaxInteger = 1<<53 - 1
)
