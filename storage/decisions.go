package storage

import (
	"context"
	"time"

	"writ/ledger/receipt"
)

// Seal signs the records of a batch that are the first of their intents, or as
// many of them as are to be stored: it sets their Receipt.Sig and returns them
// with the head that covers exactly them, in order. What it leaves out is not
// stored. A backend calls it within Commit, with the store's uniqueness already
// decided; it may call it again when it has to try again with fewer records.
type Seal func(fresh []*Record) (sealed []*Record, head receipt.SignedHead, err error)

// Decisions makes decisions final.
type Decisions interface {
	// Commit writes a batch: it decides which of batch are the first of their
	// (OrganizationID, IntentID), has seal sign those, and makes what it signed,
	// the head and the meters durable in one atomic write. existing[i] is nil where
	// batch[i] was first, otherwise the record that stands, which must be the
	// one an earlier Commit or an earlier element of batch stored, or one that is
	// Removed where that has outlived its retention. seal must not
	// be called when no record is first, and its error must be returned with
	// nothing stored, as must nothing be where it seals none. A head that does not extend LastHead by one, in sequence
	// and by hash, must give ErrConflict with nothing stored; a record whose
	// DecisionID is not as [Record] says, an error with nothing stored. A record
	// counts for the month of its DecidedAt.
	//
	// A backend may be configured to return before a batch is durable: it must be
	// visible then, what a crash loses must be the last batches, and only so many.
	//
	// After any other error the batch may or may not have been made final: read
	// LastHead before committing again.
	Commit(ctx context.Context, batch []*Record, seal Seal) (existing []*Record, err error)
	// Decided returns the record that stands for an intent, one that is Removed
	// where that has outlived its retention, or ErrNotFound where none was
	// committed before Decided was called. What it returns must be durable. Only
	// Commit tells who is first.
	Decided(ctx context.Context, org, intentID string) (*Record, error)
	// LastHead returns the newest head of the chain, or ErrNotFound. Chains are
	// told apart by their id; a single-process store has one.
	LastHead(ctx context.Context) (receipt.SignedHead, error)
	// Heads calls f for each head in order of its sequence, from seq on.
	Heads(ctx context.Context, from uint64, f func(receipt.SignedHead) error) error
	// Metered returns how many distinct intents org had decided in month.
	Metered(ctx context.Context, org string, month Month) (int64, error)
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
