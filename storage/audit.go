package storage

import (
	"context"
	"fmt"
	"strings"

	"writ/ledger/receipt"
)

// BreakError says where a history does not hold together: something was changed,
// taken away or put there since it was written. It names no secret.
type BreakError struct {
	// Head is the sequence of the head that it is about, 0 for none. Chain is that of
	// the head; zeros where the history has one chain.
	Head  uint64
	Chain [16]byte
	// OrganizationID and DecisionID name the row that it is about; empty where
	// there is none.
	OrganizationID, DecisionID string
	// Err is what is wrong there.
	Err error
}

func (e *BreakError) Error() string {
	var where []string
	if e.Chain != [16]byte{} {
		where = append(where, fmt.Sprintf("chain %x", e.Chain))
	}
	if e.Head > 0 {
		where = append(where, fmt.Sprintf("head %d", e.Head))
	}
	if e.OrganizationID != "" {
		where = append(where, fmt.Sprintf("organization %q", e.OrganizationID))
	}
	if e.DecisionID != "" {
		where = append(where, "decision "+e.DecisionID)
	}
	if len(where) == 0 {
		return e.Err.Error()
	}
	return strings.Join(where, ", ") + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *BreakError) Unwrap() error { return e.Err }

// Part is some of the rows of a history that is being proved. It calls f for
// each of them, in order, and holds all to it by which the row is found. Its
// error is a *BreakError, what f returned, or what kept it from reading.
type Part func(ctx context.Context, f func(*Record) error) error

// Tombstone is what is left of a record that [Retention] has removed.
type Tombstone struct {
	OrganizationID, IntentID, DecisionID string
	ApprovalID                           string // empty: it was decided under none
	// Leaves are the decision's and, where it had one that was signed, its
	// settlement's.
	Leaves []receipt.Leaf
	// Imported says that it was removed before [Importer] stored what is left of it.
	Imported bool
}

// IntentKey is [Record.IntentKey] of what was removed.
func (t *Tombstone) IntentKey() string { return IntentKey(t.IntentID, t.ApprovalID) }

// Census is what a history counts beside the rows that are there.
type Census struct {
	// Organizations is how many have rows.
	Organizations int
	// Unmarked is how many rows [Retention] has removed without a tombstone, as it
	// did before there were any. Of NewestUnmarked, the id of the newest of them, the
	// time can be read; it is empty where there is none.
	Unmarked       int
	NewestUnmarked string
}
