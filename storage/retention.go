package storage

import (
	"context"
	"time"
)

// Retention removes history that is older than the retention of its organization's plan.
//
// An intent stays decided when its record is removed. Some 100 bytes of the record stay
// forever. Without them the same intent could be decided again, and an intent that was denied
// could be allowed.
type Retention interface {
	// Organizations calls f once for each organization that has records, in any order. f may
	// call the store. If f returns an error, Organizations stops and returns it.
	Organizations(ctx context.Context, f func(org string) error) error
	// CountExpired counts the records of org that RemoveRecords would remove. It counts at most
	// max records.
	CountExpired(ctx context.Context, org string, before time.Time, max int) (Expired, error)
	// RemoveRecords removes the oldest of org's records that were decided before a time, in one
	// write. It returns how many it removed. most bounds the number of removed records.
	// most.Records must be positive. It must stop before it would remove more than most.Settled
	// settled records. If neither limit of most stops it, it must remove all records that were
	// decided before the time. Only records decided within twice [MaxSkew] before the time may
	// stay until a later call. It must not remove a record that was decided at or after the
	// time.
	//
	// A removed record can't be read or listed any more. Its head stays and its meter is
	// unchanged. If its intent is appended again, Append must return an existing Record that is
	// Removed. The hashes of its leaf and of its settlement's leaf stay in their places, so
	// that the other leaves of their heads can be proved.
	RemoveRecords(ctx context.Context, org string, before time.Time, most Expired) (removed Expired, err error)
}

// Expired counts records past their retention. The counts are announced in the chain before the
// records are removed. An auditor accepts at most so many leaves of which only the hash
// remains. So a leaf that was deleted otherwise can't pass for a removed record's leaf.
type Expired struct {
	Records int
	Settled int // how many of Records have a settlement with a receipt
}
