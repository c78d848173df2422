package approval

import "time"

// The limits of this package, each with its reason.
const (
	// MaxTTL is well below the shortest retention of a plan: a held decision must not be
	// removed before somebody has decided about it. An approval holds a third as long: what
	// was right a day ago may not be today.
	MaxTTL = 72 * time.Hour
)
