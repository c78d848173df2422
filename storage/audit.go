package storage

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/google/uuid"

	"writ/storage/receipt"
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

// IndexCheck is what a proof has read of a store, which the store's CheckIndex compares with
// how it finds that.
type IndexCheck struct {
	// Rows has the sums of the rows that were read, by organization.
	Rows map[string]RowSums
	// Document takes each document with the id that its organization knows, Meter each
	// meter.
	Document func(d Document, id string) error
	Meter    func(org string, m Month, decided int64) error
}

// RowSums are the sums of an organization's rows by their intents and by their decisions.
type RowSums struct{ ByIntent, ByDecision Sum }

// Add adds a row.
func (s *RowSums) Add(id uuid.UUID, r *Record) {
	s.ByIntent.Add(id, r.IntentKey())
	s.ByDecision.Add(id, string(rune(r.Decision)))
}

// Sum is the sum of the hashes of pairs of a decision id and what the decision is found by.
// Comparing the sums of rows and of an index takes one pass over each, where looking every
// row up takes a random read. Two sets of pairs have the same sum with a probability of 2^-64.
type Sum struct {
	n   int
	sum uint64
}

var sumSeed = maphash.MakeSeed()

// Add adds a pair.
func (s *Sum) Add(id uuid.UUID, by string) {
	var h maphash.Hash
	h.SetSeed(sumSeed)
	h.Write(id[:])
	h.WriteString(by)
	s.n++
	s.sum += h.Sum64()
}

// Merge adds the pairs of another sum.
func (s *Sum) Merge(other Sum) { s.n, s.sum = s.n+other.n, s.sum+other.sum }
