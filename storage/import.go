package storage

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Importer imports history from another store.
type Importer interface {
	// Import stores rows of org with their settlements, and the tombstones of rows that the other
	// store had removed. It does so in one write. The heads that sign these rows belong to chains
	// that this store does not have. So Import writes no head, and no meter counts the rows.
	// Otherwise imported rows must behave like appended rows.
	//
	// Rows that are already stored stay unchanged. A row that [Retention] has removed counts as
	// stored. Import must return ErrConflict if one of the intents already has another decision, or
	// if a decision id belongs to another intent. If [CheckImport] returns an error, Import must
	// return an error. In all these cases nothing is stored.
	Import(ctx context.Context, org string, rows []*Record, removed []*Tombstone) error
	// CountImported counts the imported rows and tombstones of org. A row or a tombstone is
	// imported if its head belongs to a chain that this store does not have.
	CountImported(ctx context.Context, org string) (Imported, error)
	// RemoveImported removes imported rows and tombstones in one write. It returns how many it
	// removed. most bounds this number. A lower number means that no imported rows remain. If one
	// of the rows is counted in [Imported].Settled, RemoveImported must return ErrConflict and
	// remove nothing. It leaves no tombstones, so the intents are undecided afterwards.
	RemoveImported(ctx context.Context, org string, most int) (int, error)
}

// Imported counts the imported rows and tombstones of an organization.
type Imported struct {
	Rows    int
	Removed int // tombstones
	// Settled is how many of these rows and tombstones have a settlement that a head of this store
	// signs. The import can't be undone then.
	Settled int
}

// All returns the number of imported rows and tombstones.
func (n *Imported) All() int { return n.Rows + n.Removed }

// AddRow adds r to the counts if r was imported, and reports whether it was. own reports whether a
// chain belongs to this store.
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

// AddRemoved does for a tombstone what AddRow does for a row.
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

// Removable returns an error if the counted rows must not be removed.
func (n *Imported) Removable() error {
	if n.Settled == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of the imported rows have settlements that this store has signed", ErrConflict, n.Settled)
}

// ErrImporting means that an import of the organization is not finished. Until then no policy of
// the organization can be stored. With a policy, an intent could be decided again before its
// earlier decision is imported.
var ErrImporting = errors.New("an import of the organization is not finished")

// Import is an unfinished import. Until it is finished, history of the organization may be
// missing.
type Import struct {
	ID      string    `json:"id"` // the export's id
	BeganAt time.Time `json:"began_at"`
}

// CheckImport returns an error if no backend may import rows and removed into org.
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

// SameRow returns nil if the stored row equals r, and ErrConflict otherwise. The stored row may
// have a settlement that r lacks, because the settlement may have been posted after the export.
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
	return fmt.Errorf("%w: decision %s is stored for the intent of decision %s, or with other content", ErrConflict,
		stored.DecisionID, r.DecisionID)
}

// Entry returns the body of the entry that an import signs for t. t must be Imported. It is the
// canonical JSON of {approval_id, decision_id, entry, intent_id, leaves, organization_id}.
// entry is "removed". A leaf is {chain, hash, index, seq}, with chain and hash in hex. An empty
// approval_id is left out.
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
