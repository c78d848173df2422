package storage

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage/receipt"
)

// BreakError says where a history was changed after it was written. It names no secret.
type BreakError struct {
	// Head is the sequence of the affected head. It is 0 if the break affects no head. Chain is
	// the chain of that head. It is zero in a history with one chain.
	Head  uint64
	Chain [16]byte
	// OrganizationID and DecisionID name the affected row. Both are empty if the break
	// affects no row.
	OrganizationID, DecisionID string
	// Err describes the break.
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

func (e *BreakError) Unwrap() error { return e.Err }

// Tombstone is the remainder of a record that [Retention] has removed.
type Tombstone struct {
	OrganizationID, IntentID, DecisionID string
	ApprovalID                           string // empty: decided under no approval
	// Leaves are the leaf of the decision and, after it, the leaf of its settlement if the
	// settlement was signed.
	Leaves []receipt.Leaf
	// Imported says that the record was removed before [Importer] stored its tombstone.
	Imported bool
	// Forgotten is when a [Forgetter] has forgotten the intent. IntentID is empty then.
	Forgotten time.Time
}

// IntentKey is the key of the removed record's intent, see [Record.IntentKey].
func (t *Tombstone) IntentKey() string { return IntentKey(t.IntentID, t.ApprovalID) }

// IndexCheck is the input of a store's CheckIndex, which checks the store's index. A proof fills it
// while it reads all rows.
type IndexCheck struct {
	// Rows has a sum over the rows that the proof has read, by organization. If it is nil, the indexes
	// of rows are not checked.
	Rows map[string]RowSums
	// CheckIndex calls Document with each document and with the document's id in its organization.
	// It calls Meter with each meter, unless Meter is nil.
	Document func(d Document, id string) error
	Meter    func(org string, m Month, decided int64) error
}

// RowSums are two sums of an organization's rows. In one, the key of a row is its intent. In the
// other, it is its decision.
type RowSums struct{ ByIntent, ByDecision Sum }

// Add adds a row.
func (s *RowSums) Add(id uuid.UUID, r *Record) {
	s.ByIntent.Add(id, r.IntentKey())
	s.ByDecision.Add(id, string(rune(r.Decision)))
}

// Sum is the sum of the hashes of pairs. A pair is a decision id and a key of the decision. A store
// compares its rows with an index by their sums, which takes one pass over each. Looking up every
// row would take one random read per row. Two different sets of pairs have the same sum with a
// probability of 2^-64.
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
