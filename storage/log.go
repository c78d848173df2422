package storage

import (
	"context"
	"time"

	"writ/storage/receipt"
)

// Batch is the input of one [Log.Append], or the stored elements that it returns.
type Batch struct {
	Records []*Record
	Entries []*Entry
}

// Seal signs the new elements of a batch, or some of them. It sets their signatures and returns
// them in order, with the head that follows tip. The leaves of the head are exactly the returned
// elements, records before entries: a backend may leave out signatures that follow from the
// head. Elements that Seal does not return are not stored. A backend calls it within Append after uniqueness is
// decided, and may call it again with fewer elements.
type Seal func(tip receipt.Chain, fresh Batch) (sealed Batch, head receipt.SignedHead, err error)

// Log makes decisions and entries final. It has a chain of signed heads for each handle
// that writes, and the rows under them.
type Log interface {
	// Append writes a batch in one atomic write. It decides which records are the first of
	// their (OrganizationID, IntentID, ApprovalID) and which entries are the first of their
	// (OrganizationID, Kind, Key). seal signs these on the tip of the handle's chain. Append
	// makes the elements that seal returns durable.
	//
	// existing has nil for each element that was first. For others it has the record or the
	// entry that an earlier Append or an earlier element of batch stored. That is Removed if
	// it is past its retention.
	//
	// seal must not be called if no element is first. If seal fails, its error must be
	// returned and nothing stored. If it seals nothing, nothing must be stored. A head that
	// does not extend Tip by one, in sequence and by hash, must give ErrConflict with
	// nothing stored. A DecisionID that violates [Record] must give an error with nothing
	// stored. A record counts for the month of its DecidedAt, unless it has an ApprovalID:
	// then its intent was counted when it was held.
	//
	// A backend may be configured to return before a batch is durable. The batch must be
	// visible then, and a crash must lose only the last batches, up to a bound.
	//
	// After ErrUnknown the batch may or may not be stored: Append the same batch again. An
	// element that the second call does not find must not become stored by the first call.
	// After any other error nothing is stored, or the store has stopped for good.
	Append(ctx context.Context, batch Batch, seal Seal) (existing Batch, err error)
	// Decided returns the record of an intent under an approval, or under none if approvalID
	// is empty. The record is Removed if it is past its retention. It is ErrNotFound if no
	// record was appended before the call. A returned record must be durable. Only Append
	// decides which record is first.
	Decided(ctx context.Context, org, intentID, approvalID string) (*Record, error)
	// Entry returns org's entry of a kind, which is no settlement, by its key, or
	// ErrNotFound if none was appended before the call.
	Entry(ctx context.Context, org string, kind EntryKind, key string) (*Entry, error)
	// Entries returns org's entries of a kind, newest first. Settlements are not
	// listed: they come with their records.
	Entries(ctx context.Context, org string, kind EntryKind, p Page) (entries []*Entry, next string, err error)
	// Tip returns the end of the chain that this handle writes. Its Seq is 0 before
	// the first head.
	Tip(ctx context.Context) (receipt.Chain, error)
	// Heads calls f for each head of a chain in order of its sequence, from seq on.
	Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error
	// Chains calls f with the end of each chain that has heads.
	Chains(ctx context.Context, f func(tip receipt.Chain) error) error
}

// Month is a calendar month in UTC, the period of the meters, as year*100+month
// (202611).
type Month int

// MonthOf returns the month t falls in.
func MonthOf(t time.Time) Month {
	y, m, _ := t.UTC().Date()
	return Month(y*100 + int(m))
}

// Start returns the first moment of m. The first of the month after it, which
// is not of m, is m.Start().AddDate(0, 1, 0).
func (m Month) Start() time.Time {
	return time.Date(int(m/100), time.Month(m%100), 1, 0, 0, 0, 0, time.UTC)
}
