package storage

import (
	"context"
	"time"
)

// Retention removes history that is older than its organization's plan keeps.
//
// An intent stays decided when its record is removed: what is left of it, some
// 100 bytes, is for good, because an id that could be decided anew might be
// allowed where it was denied.
type Retention interface {
	// Organizations calls f for each organization that has records, once. Their
	// order is the backend's. f may call the store; its error ends the walk and
	// is returned.
	Organizations(ctx context.Context, f func(org string) error) error
	// CountExpired returns how many of org's records RemoveRecords would remove, max
	// at most.
	CountExpired(ctx context.Context, org string, before time.Time, max int) (int, error)
	// RemoveRecords removes, in one write, the oldest of org's records that were
	// decided before a time, max at most (it must be positive), and returns how
	// many. Fewer than max means that none are left, but for those decided within
	// twice [MaxSkew] before the time, which may stay until a later call. It must
	// remove none that was decided at the time or after.
	//
	// Nothing finds a removed record any more, but its head and its meter stay.
	// Append must return a Record that is Removed as the existing one of its
	// intent. The hashes of its leaf and of its settlement's stay in their places, so
	// that what else their heads sign can be proved.
	RemoveRecords(ctx context.Context, org string, before time.Time, max int) (removed int, err error)
}
