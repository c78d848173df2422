package storage

import (
	"context"
	"time"
)

// Retention removes history that is older than the plan of its organization allows.
//
// An intent stays decided when its record is removed. About 100 bytes of the record stay forever.
// Without these bytes the same intent could be decided again, and an intent that was denied could
// be allowed. A [Forgetter] removes the intents among these bytes.
type Retention interface {
	// Organizations calls f once for each organization that has records, in any order. f may
	// call the store. If f returns an error, Organizations stops and returns it.
	Organizations(ctx context.Context, f func(org string) error) error
	// CountExpired counts the records of org that RemoveRecords would remove. It counts at most
	// max records.
	CountExpired(ctx context.Context, org string, before time.Time, max int) (Expired, error)
	// RemoveRecords removes the oldest of org's records that were decided before a time, in one
	// write. It returns how many it removed. most bounds the removed records, and among them the
	// settled records. most.Records must be positive. If no bound is reached, RemoveRecords must
	// remove all records decided before the time. Records decided less than twice [MaxSkew] before
	// the time may stay until a later call. Records decided at or after the time must stay.
	//
	// A removed record can't be read or listed any more. Its head stays and its meter is unchanged.
	// If its intent is appended again, Append must return an existing Record that is Removed. The
	// hash of its leaf stays, and the hash of its settlement's leaf. The proofs of other leaves of
	// the heads need these hashes.
	RemoveRecords(ctx context.Context, org string, before time.Time, most Expired) (removed Expired, err error)
}

// Forgetter is a [Retention] that can forget the intents of removed records.
type Forgetter interface {
	// Forget forgets intents of org's removed records that were decided at from or later and before a time. It forgets
	// at most max, in one write, and returns how many. A lower number than max means that no more are left. It forgets
	// no intent that was decided under an approval, and none of a record that is signed by a chain of another store.
	// Records decided less than twice [MaxSkew] from the times may stay.
	//
	// A forgotten intent is undecided. The caller must make sure that it is refused before it is appended again. The
	// leaves stay, and the proof of the chain with them.
	Forget(ctx context.Context, org string, from, before time.Time, max int) (int, error)
}

// Expired counts records whose retention has ended. The counts are written to the chain before the
// records are removed. An auditor accepts at most so many leaves of which only the hash remains. So
// a leaf that was deleted in another way is found.
type Expired struct {
	Records int
	Settled int // how many of Records have a signed settlement
}
