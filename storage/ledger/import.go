package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Import records that an organization's history was imported from another store. Its
// entry is the canonical JSON of {entry, id, imported_at, organization_id, removed,
// root, rows, settled}. ImportedAt is in whole milliseconds.
//
// Root is the root of an RFC 9162 tree, as "sha256:" and hex. The tree has a leaf for
// each row, in the order of decision ids. If a row has a settlement, the leaf of the
// settlement follows the leaf of the row. For a row that the other store had removed, the
// tree has the leaf of its [storage.Tombstone.Entry] instead.
type Import struct {
	ID             string    `json:"id"` // of the export, a UUIDv7
	OrganizationID string    `json:"organization_id"`
	Rows           int64     `json:"rows"`
	Settled        int64     `json:"settled"` // settlements in the tree
	Removed        int64     `json:"removed"`
	Root           string    `json:"root"`
	ImportedAt     time.Time `json:"imported_at"`
}

func (i Import) entry() *storage.Entry {
	i.ImportedAt = i.ImportedAt.UTC()
	return entryOf(storage.ImportEntry, i.OrganizationID, i.ID, i)
}

// ParseImport reads the entry of an import.
func ParseImport(e *storage.Entry) (Import, error) { return parseBody(e, Import.entry) }

// SignImport ends an import after all of its rows are stored. It sets ImportedAt, signs
// the entry and returns the signed import. If the organization has a signed import
// already, SignImport returns that one. Its error is storage.ErrConflict if the earlier
// import is of another history.
func (l *Ledger) SignImport(ctx context.Context, i Import) (Import, error) {
	i.ImportedAt = l.cfg.Now().Truncate(time.Millisecond)
	final, err := l.append(ctx, i.entry())
	if err != nil {
		return i, fmt.Errorf("committing an import: %w", err)
	}
	first, err := ParseImport(final[0])
	if i.ImportedAt = first.ImportedAt; err == nil && first != i {
		err = fmt.Errorf("%w: the import %s was signed for another history", storage.ErrConflict, i.ID)
	}
	return first, err
}

// Abandonment announces that the rows of an unfinished import are about to be removed. Its
// entry is the canonical JSON of {abandoned_at, entry, export, id, organization_id, removed,
// rows}. AbandonedAt is in whole milliseconds.
type Abandonment struct {
	ID             string    `json:"id"`     // a UUIDv7
	ExportID       string    `json:"export"` // the id of the imported file
	OrganizationID string    `json:"organization_id"`
	Rows           int64     `json:"rows"`
	Removed        int64     `json:"removed"` // rows that are only tombstones
	AbandonedAt    time.Time `json:"abandoned_at"`
}

func (a Abandonment) entry() *storage.Entry {
	a.AbandonedAt = a.AbandonedAt.UTC()
	return entryOf(storage.AbandonEntry, a.OrganizationID, a.ID, a)
}

// SignAbandonment sets ID and AbandonedAt of a and signs it. It must be called before the
// rows of the import are removed.
func (l *Ledger) SignAbandonment(ctx context.Context, a Abandonment) (Abandonment, error) {
	now := l.cfg.Now()
	id, _ := l.ids.next(now)
	a.ID, a.AbandonedAt = id.String(), now.Truncate(time.Millisecond)
	if _, err := l.append(ctx, a.entry()); err != nil {
		return a, fmt.Errorf("committing that an import is abandoned: %w", err)
	}
	return a, nil
}

// ImportTree computes the counts and the root of an [Import]. Rows must be added in the
// order of their ids. The size of an ImportTree grows with the logarithm of the number of
// rows. The zero ImportTree has no rows.
type ImportTree struct {
	Rows, Settled, Removed int64

	forest receipt.Forest
}

// AddRow adds a row and its settlement, if it has one.
func (t *ImportTree) AddRow(r *storage.Record) {
	t.Rows++
	t.forest.Add(r.Receipt.LeafHash())
	if r.Settlement != nil {
		t.Settled++
		t.forest.Add(receipt.EntryLeaf(r.SettlementEntry().Body))
	}
}

// AddRemoved adds the tombstone of a row.
func (t *ImportTree) AddRemoved(tombstone *storage.Tombstone) {
	t.Removed++
	t.forest.Add(receipt.EntryLeaf(tombstone.Entry()))
}

// Root returns the root in the form of [Import].
func (t *ImportTree) Root() string { return rootText(t.forest.Root()) }

func rootText(root [sha256.Size]byte) string { return "sha256:" + hex.EncodeToString(root[:]) }

// Verifier verifies single rows. It verifies the signature of a head once, however many
// rows are under it. It is safe for concurrent use.
type Verifier struct {
	keys receipt.Keys

	mu       sync.Mutex
	verified map[[sha256.Size]byte]struct{} // heads, by sumOf
}

// NewVerifier returns a Verifier that trusts keys.
func NewVerifier(keys receipt.Keys) *Verifier { return &Verifier{keys: keys} }

// Verify returns nil if trusted keys have signed r and r's settlement, if there is one. r must
// match its receipt, and the settlement must belong to r.
func (v *Verifier) Verify(r *storage.Record) error {
	if err := VerifyRow(r); err != nil {
		return err
	}
	if err := v.leaf(r.Receipt.Inclusion(), r.Receipt.LeafHash()); err != nil {
		return err
	}
	return settlementLeaf(r, v.leaf)
}

// maxVerified is the largest number of heads that a Verifier remembers. They take about 3
// MiB.
const maxVerified = 1 << 16

// leaf verifies that keys have signed a leaf.
func (v *Verifier) leaf(in receipt.Inclusion, leaf [sha256.Size]byte) error {
	h, err := in.SignedHead(leaf)
	if err != nil {
		return err
	}
	if h.Seq == 0 {
		return errors.New("its head has the sequence 0, and the first one is 1")
	}
	sum := sumOf(&h)
	v.mu.Lock()
	_, verified := v.verified[sum]
	v.mu.Unlock()
	if verified {
		return nil
	}
	if err := h.Verify(v.keys); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.verified == nil || len(v.verified) >= maxVerified {
		v.verified = make(map[[sha256.Size]byte]struct{})
	}
	v.verified[sum] = struct{}{}
	return nil
}
