package storage

import (
	"context"
	"time"

	"writ/storage/receipt"
)

// Batch is the input of one [Log.Append]. Append also returns the elements that were already
// stored as a Batch.
type Batch struct {
	Records []*Record
	Entries []*Entry
}

// Seal signs all or some of the new elements of a batch. It sets the signatures of these
// elements, and returns the elements in order with the head that follows tip. The leaves of the
// head are exactly the returned elements, with records before entries. Therefore a backend need
// not store a signature that follows from the head. An element that Seal does not return is not
// stored. A backend calls Seal within Append, after it has found the new elements. It may call
// Seal again with fewer elements.
type Seal func(tip receipt.Chain, fresh Batch) (sealed Batch, head receipt.SignedHead, err error)

// Log makes decisions and entries final. It has a chain of signed heads for each handle that
// writes, and the rows that the heads sign.
type Log interface {
	// Append writes a batch in one atomic write. It decides which records are the first of
	// their (OrganizationID, IntentID, ApprovalID) and which entries are the first of their
	// (OrganizationID, Kind, Key). seal signs these first records and entries on the tip of the
	// handle's chain. Append makes the elements that seal returns durable.
	//
	// existing has nil for each element that was first. For every other element it has the
	// record or the entry that was first, from an earlier Append or from earlier in batch. A
	// record or an entry past its retention is Removed.
	//
	// seal must not be called if no element is first. If seal fails, Append must return its
	// error and store nothing. If it seals nothing, nothing must be stored. If the head does
	// not extend Tip by one, in sequence and by hash, Append must return ErrConflict and store
	// nothing. If a DecisionID violates [Record], Append must return an error and store
	// nothing. A record without an ApprovalID counts for the month of its DecidedAt. A record
	// with an ApprovalID does not count, because its intent was counted when it was held.
	//
	// A backend may be configured so that Append returns before the batch is durable. The batch
	// must be visible when Append returns. A crash must lose only the last batches, up to a
	// bound.
	//
	// After ErrUnknown the batch may or may not be stored, and the caller must Append the same
	// batch again. If the second call does not find an element, the first call must not store
	// it later. After any other error nothing is stored, or the store has stopped for good.
	Append(ctx context.Context, batch Batch, seal Seal) (existing Batch, err error)
	// Decided returns the record of an intent under an approval, or under no approval if
	// approvalID is empty. A record past its retention is Removed. Decided returns ErrNotFound
	// if no record was appended before the call. A returned record must be durable. Only Append
	// decides which record is first.
	Decided(ctx context.Context, org, intentID, approvalID string) (*Record, error)
	// Entry returns org's entry of a kind with a key. The kind must not be SettlementEntry. It
	// returns ErrNotFound if no such entry was appended before the call.
	Entry(ctx context.Context, org string, kind EntryKind, key string) (*Entry, error)
	// Entries returns org's entries of a kind, newest first. Settlements are not listed,
	// because records have them.
	Entries(ctx context.Context, org string, kind EntryKind, p Page) (entries []*Entry, next string, err error)
	// Tip returns the end of the chain that this handle writes. The Seq of the tip is 0 before
	// the first head.
	Tip(ctx context.Context) (receipt.Chain, error)
	// Heads calls f for each head of a chain whose sequence is at least from, in the order of
	// sequences.
	Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error
	// Chains calls f with the end of each chain that has heads.
	Chains(ctx context.Context, f func(tip receipt.Chain) error) error
}

// Month is a calendar month in UTC as year*100+month, such as 202611. It is the period of a
// meter.
type Month int

// MonthOf returns the month that t is in.
func MonthOf(t time.Time) Month {
	y, m, _ := t.UTC().Date()
	return Month(y*100 + int(m))
}

// Start returns the first moment of m. m.Start().AddDate(0, 1, 0) is the first moment after m.
func (m Month) Start() time.Time {
	return time.Date(int(m/100), time.Month(m%100), 1, 0, 0, 0, 0, time.UTC)
}
