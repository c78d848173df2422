package storage

import (
	"context"
	"time"
)

// Retention removes history that is older than its organization's plan keeps.
//
// An intent stays decided when its record is removed. Some 100 bytes of it stay forever,
// because an id that could be decided again might be allowed where it was denied.
type Retention interface {
	// Organizations calls f once for each organization that has records, in any order.
	// f may call the store; its error ends the walk and is returned.
	Organizations(ctx context.Context, f func(org string) error) error
	// CountExpired counts the records of org that RemoveRecords would remove, at most
	// max.
	CountExpired(ctx context.Context, org string, before time.Time, max int) (Expired, error)
	// RemoveRecords removes, in one write, the oldest of org's records that were decided
	// before a time, and returns how many. most bounds their number; most.Records must be
	// positive. It must stop before it would remove more than most.Settled settled records.
	// If it removes fewer than most.Records, the others must stay, except that records
	// decided within twice [MaxSkew] before the time may stay until a later call. It must
	// not remove a record that was decided at the time or after.
	//
	// A removed record can't be read or listed any more. Its head and its meter stay. For
	// its intent Append must return an existing Record that is Removed. The hashes of its
	// leaf and of its settlement's leaf stay in their places, so that the other leaves of
	// their heads can be proved.
	RemoveRecords(ctx context.Context, org string, before time.Time, most Expired) (removed Expired, err error)
}

// Expired counts records past their retention. The announced counts bound the remaining hashes,
// so that no other leaf can pass for a removed record's leaf.
type Expired struct {
	Records int
	Settled int // of Records, those with a settlement that has a receipt
}
