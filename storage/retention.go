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
	// CountExpired counts the records of org's that RemoveRecords would remove, max at
	// most.
	CountExpired(ctx context.Context, org string, before time.Time, max int) (Expired, error)
	// RemoveRecords removes, in one write, the oldest of org's records that were
	// decided before a time, most at most (its Records must be positive), and returns
	// how many. It must stop before a settled one that is one more than most.Settled.
	// Fewer than most.Records means that none else may be removed, but for those decided
	// within twice [MaxSkew] before the time, which may stay until a later call. It must
	// remove none that was decided at the time or after.
	//
	// Nothing finds a removed record any more, but its head and its meter stay.
	// Append must return a Record that is Removed as the existing one of its
	// intent. The hashes of its leaf and of its settlement's stay in their places, so
	// that what else their heads sign can be proved.
	RemoveRecords(ctx context.Context, org string, before time.Time, most Expired) (removed Expired, err error)
}

// Expired counts records that are kept no longer. What is announced of it bounds the
// hashes that are left: nothing else can pass for the leaf of a removed record.
type Expired struct {
	Records int
	Settled int // of Records, those with a settlement that has a receipt
}
