package storage

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Importer takes in history that another store has decided.
type Importer interface {
	// Import stores rows of org with their settlements, and what is left of rows that
	// the other store had removed, in one write. They are under heads of chains that
	// this store does not have: no head is written, and no meter counts them. In all
	// else they must be as rows that were appended.
	//
	// What is stored already stays as it is. Import must return ErrConflict with
	// nothing stored where another decision stands for one of the intents, or a
	// decision id is of another intent; a row that [Retention] has removed since is the
	// same one. It must refuse, with nothing stored, what [CheckImport] refuses.
	Import(ctx context.Context, org string, rows []*Record, removed []*Tombstone) error
	// CountImported counts what Import has stored of org: rows, and what is left of
	// rows, that are under heads of chains which this store does not have.
	CountImported(ctx context.Context, org string) (Imported, error)
	// RemoveImported removes that, in one write, most rows at most, and returns how
	// many. Fewer than most means that none is left. It must return ErrConflict with
	// nothing removed where one of them is Settled. Nothing is left of them: their
	// intents are undecided.
	RemoveImported(ctx context.Context, org string, most int) (int, error)
}

// Imported counts what [Importer] has stored of an organization.
type Imported struct {
	Rows int
	// Removed is how many rows there were of which some leaves are left.
	Removed int
	// Settled is how many of both have a settlement under a head of this store, which
	// nothing can take back.
	Settled int
}

// All returns how many there are.
func (n *Imported) All() int { return n.Rows + n.Removed }

// AddRow adds a row, if it was imported into a store that has chains of its own, and
// reports whether it was.
func (n *Imported) AddRow(r *Record, own func(chain [16]byte) bool) (bool, error) {
	chain, err := r.Receipt.Inclusion().Chain()
	if err != nil || own(chain) {
		return false, err
	}
	n.Rows++
	if s := r.Settlement; s != nil {
		if chain, err = s.Receipt.Chain(); own(chain) {
			n.Settled++
		}
	}
	return true, err
}

// AddRemoved adds what is left of a row in the same way.
func (n *Imported) AddRemoved(t *Tombstone, own func(chain [16]byte) bool) bool {
	if len(t.Leaves) == 0 || !t.Imported && own(t.Leaves[0].Chain) {
		return false
	}
	n.Removed++
	if len(t.Leaves) > 1 && own(t.Leaves[1].Chain) {
		n.Settled++
	}
	return true
}

// Removable returns why what was counted can't be removed.
func (n *Imported) Removable() error {
	if n.Settled == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of the imported rows have settlements that this store has signed", ErrConflict, n.Settled)
}

// ErrImporting means that an import of the organization is not finished. A policy that is
// registered meanwhile would have intents decided whose decisions are still to be
// imported.
var ErrImporting = errors.New("an import of the organization is not finished")

// Import is an import that is not finished: until it is, some of the
// organization's history may be missing.
type Import struct {
	ID      string    `json:"id"` // of the export
	BeganAt time.Time `json:"began_at"`
}

// CheckImport returns why no backend imports rows or removed into org.
func CheckImport(org string, rows []*Record, removed []*Tombstone) error {
	intents, ids := make(map[string]bool), make(map[string]bool)
	once := func(of, intent, id string) error {
		switch {
		case of != org:
			return fmt.Errorf("decision %.64q is of organization %.64q, not %.64q", id, of, org)
		case intents[intent] || ids[id]:
			return fmt.Errorf("decision %s or its intent is there twice", id)
		}
		intents[intent], ids[id] = true, true
		return nil
	}
	for _, r := range rows {
		id, err := r.checkID()
		if err := cmp.Or(err, once(r.OrganizationID, r.IntentKey(), r.DecisionID)); err != nil {
			return err
		}
		if r.Removed() || r.Settlement != nil && r.Settlement.Receipt == nil {
			return fmt.Errorf("decision %s has no outcome, or a settlement without a receipt", id)
		}
	}
	for _, t := range removed {
		_, err := decisionID(t.DecisionID)
		if err := cmp.Or(err, once(t.OrganizationID, t.IntentKey(), t.DecisionID)); err != nil {
			return err
		}
		if n := len(t.Leaves); n < 1 || n > 2 {
			return fmt.Errorf("%d leaves are left of decision %s, and it had one and its settlement another", n,
				t.DecisionID)
		}
	}
	return nil
}

// SameRow returns nil where r is what is stored already, and otherwise an
// ErrConflict. A settlement that only the stored row has was posted since.
func SameRow(stored, r *Record) error {
	same := stored.DecisionID == r.DecisionID
	if same && !stored.Removed() {
		same = stored.IntentKey() == r.IntentKey() && stored.IntentDigest == r.IntentDigest &&
			stored.AuditDigest == r.AuditDigest && stored.Receipt == r.Receipt
		if a, b := stored.Settlement, r.Settlement; same && b != nil {
			same = a != nil && a.Receipt != nil && SameSettlement(*a, *b) && *a.Receipt == *b.Receipt
		}
	}
	if same {
		return nil
	}
	return fmt.Errorf("%w: decision %s stands for the intent of decision %s, or is not the same", ErrConflict,
		stored.DecisionID, r.DecisionID)
}

// Entry returns what an import signs of t, which must be Imported: the canonical
// JSON of {approval_id, decision_id, entry, intent_id, leaves, organization_id}, entry
// being "removed" and a leaf {chain, hash, index, seq}, chain and hash in hex, without
// an approval_id that is empty.
func (t *Tombstone) Entry() []byte {
	type leaf struct {
		Chain string `json:"chain"`
		Hash  string `json:"hash"`
		Index uint32 `json:"index"`
		Seq   uint64 `json:"seq"`
	}
	leaves := []leaf{}
	for _, l := range t.Leaves {
		leaves = append(leaves, leaf{hex.EncodeToString(l.Chain[:]), hex.EncodeToString(l.Hash[:]), l.Index, l.Seq})
	}
	return canonical(struct {
		ApprovalID     string `json:"approval_id,omitzero"`
		DecisionID     string `json:"decision_id"`
		Entry          string `json:"entry"`
		IntentID       string `json:"intent_id"`
		Leaves         []leaf `json:"leaves"`
		OrganizationID string `json:"organization_id"`
	}{t.ApprovalID, t.DecisionID, "removed", t.IntentID, leaves, t.OrganizationID})
}
