package storage

import (
	"context"
	"time"

	"writ.example/writ/storage/receipt"
)

// Batch is the input of one [Log.Append]. Append also returns the elements that were already
// stored as a Batch.
type Batch struct {
	Records []*Record
	Entries []*Entry
}

// Seal signs elements of a batch, either all or some. It returns the signed elements in their
// order, with the head that follows tip. The head's leaves are exactly the returned elements,
// records before entries. Therefore a backend can compute a signature from the head and need not
// store it. If Seal does not return an element, the element is not stored. A backend calls Seal
// within Append with the elements that are first, as far as it knows. If it finds that some of them
// are not first, it calls Seal again without these. Only what the last call has signed may be stored.
type Seal func(tip receipt.Chain, fresh Batch) (sealed Batch, head receipt.SignedHead, err error)

// Log makes decisions and entries final. It has the signed rows. It also has a chain of signed
// heads for each handle that writes.
type Log interface {
	// Append writes a batch in one atomic write. It decides which records are the first of their
	// (OrganizationID, IntentID, ApprovalID) and which entries are the first of their
	// (OrganizationID, Kind, Key). seal signs these records and entries with a head that follows
	// the tip of the handle's chain. Append makes the returned elements durable.
	//
	// For each element of batch, existing has nil if the element is first. Otherwise it has the
	// record or entry that is first, from an earlier Append or from earlier in batch. It is Removed
	// if its retention has ended.
	//
	// If no element is first, nothing must be stored, and an error of seal must not be returned. If
	// an element is first and seal fails, Append must return its error and store nothing. If seal
	// seals nothing, nothing must be stored. If the head does not extend
	// Tip by one, in sequence and by hash, Append must return ErrConflict and store nothing. If a
	// DecisionID breaks the rules of [Record], Append must return an error and store nothing. A
	// record without an ApprovalID counts for the month of its DecidedAt. A record with an
	// ApprovalID does not count, because its intent was counted when it was held.
	//
	// A backend may let Append return before the batch is durable, if its configuration says so.
	// The batch must be visible when Append returns. A crash must lose only the last batches, up to
	// a configured number.
	//
	// After ErrUnknown the batch may or may not be stored, and the caller must Append the same
	// batch again. If the second call finds that an element was not stored, the first call must
	// never store that element. After any other error nothing is stored, or the store has stopped
	// for good.
	Append(ctx context.Context, batch Batch, seal Seal) (existing Batch, err error)
	// Decided returns the decision of an intent under an approval, or under no approval if
	// approvalID is empty. The record is Removed if its retention has ended. Decided returns
	// ErrNotFound if no record was appended before the call. A returned record must be durable.
	// Only Append decides which record is first.
	Decided(ctx context.Context, org, intentID, approvalID string) (*Record, error)
	// Entry returns org's entry of a kind with a key. The kind must not be SettlementEntry. Entry
	// returns ErrNotFound if no such entry was appended before the call.
	Entry(ctx context.Context, org string, kind EntryKind, key string) (*Entry, error)
	// Entries returns org's entries of a kind, newest first. It does not list settlements, because
	// they are in the records.
	Entries(ctx context.Context, org string, kind EntryKind, p Page) (entries []*Entry, next string, err error)
	// Tip returns the end of the chain that this handle writes. Before the first head, the tip's
	// Seq is 0.
	Tip(ctx context.Context) (receipt.Chain, error)
	// Heads calls f for each head of a chain in the order of sequences, beginning at a sequence.
	Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error
	// Chains calls f with the end of each chain that has at least one head.
	Chains(ctx context.Context, f func(tip receipt.Chain) error) error
	// Rows calls f for each head of a chain that q selects, in the order of sequences, with the
	// records that the head signed. It leaves out heads that are not durable yet.
	Rows(ctx context.Context, q RowQuery, f func(HeadRows) error) error
	// Followed returns the ends of the chains whose rows this handle passes on to others: the chain
	// that it writes, and, if it leads, the chains that no handle writes. For some seconds two
	// handles may have the same chain, so passing rows on must be harmless if both do it.
	Followed(ctx context.Context) ([]receipt.Chain, error)
}

// RowQuery selects the heads of a chain, beginning at a sequence.
type RowQuery struct {
	Chain [16]byte
	From  uint64
	// Org, if it is not empty, leaves out the records of all other organizations.
	Org string
	// Bare leaves out the records, which makes the query cheaper.
	Bare bool
}

// HeadRows are the records of a head.
type HeadRows struct {
	Seq uint64
	// Count is the number of records that the head signed. A backend that cannot tell the leaf of a
	// settlement from the leaf of a record, because both were removed, counts both. A backend that
	// cannot tell whose a removed record was counts it for every Org.
	Count int
	// Records are in the order of the head's leaves, as [History.Record] returns them. It lacks the
	// records that [Retention] has removed. It is nil if the query is Bare.
	Records []*Record
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
