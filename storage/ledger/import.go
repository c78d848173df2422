package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"writ/storage"
	"writ/storage/receipt"
)

// Import says that an organization's history was taken in from another store. Its
// entry is the canonical JSON of {entry, id, imported_at, organization_id, removed,
// root, rows, settled}, imported_at with milliseconds at most.
//
// Root is the root of the RFC 9162 tree, as "sha256:" and hex, of what was imported,
// in the order of decision ids: for each row its leaf and then, if it has a settlement,
// that one's leaf; for each row that the other store
// had removed the leaf of [storage.Tombstone.Entry].
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

// SignImport ends an import, of which all is stored, by its entry. It sets ImportedAt
// and returns the import that stands. Said again, it is what was said first; its error
// is storage.ErrConflict where that is of another history.
func (l *Ledger) SignImport(ctx context.Context, i Import) (Import, error) {
	i.ImportedAt = l.cfg.Now().Truncate(time.Millisecond)
	stands, err := l.append(ctx, i.entry())
	if err != nil {
		return i, fmt.Errorf("committing an import: %w", err)
	}
	first, err := ParseImport(stands[0])
	if i.ImportedAt = first.ImportedAt; err == nil && first != i {
		err = fmt.Errorf("%w: the import %s was signed for another history", storage.ErrConflict, i.ID)
	}
	return first, err
}

// Abandonment says, before they are removed, that the rows of an import which was never
// finished are taken back. Its entry is the canonical JSON of {abandoned_at, entry,
// export, id, organization_id, removed, rows}, abandoned_at with milliseconds at most.
type Abandonment struct {
	ID             string    `json:"id"`     // a UUIDv7
	ExportID       string    `json:"export"` // of which the import was
	OrganizationID string    `json:"organization_id"`
	Rows           int64     `json:"rows"`
	Removed        int64     `json:"removed"` // rows of which the leaves alone were imported or are left
	AbandonedAt    time.Time `json:"abandoned_at"`
}

func (a Abandonment) entry() *storage.Entry {
	a.AbandonedAt = a.AbandonedAt.UTC()
	return entryOf(storage.AbandonEntry, a.OrganizationID, a.ID, a)
}

// SignAbandonment announces that what an import has stored is removed. It sets ID and
// AbandonedAt.
func (l *Ledger) SignAbandonment(ctx context.Context, a Abandonment) (Abandonment, error) {
	now := l.cfg.Now()
	id, _ := l.ids.next(now)
	a.ID, a.AbandonedAt = id.String(), now.Truncate(time.Millisecond)
	if _, err := l.append(ctx, a.entry()); err != nil {
		return a, fmt.Errorf("committing that an import is abandoned: %w", err)
	}
	return a, nil
}

// Tree is what an [Import] says of rows that are added in the order of their ids. It
// takes memory for the logarithm of their number. The zero Tree has none.
type Tree struct {
	Rows, Settled, Removed int64

	forest receipt.Forest
}

// AddRow adds a row, with its settlement if that is signed.
func (t *Tree) AddRow(r *storage.Record) {
	t.Rows++
	t.forest.Add(r.Receipt.LeafHash())
	if r.Settlement != nil {
		t.Settled++
		t.forest.Add(receipt.EntryLeaf(r.SettlementEntry().Body))
	}
}

// AddRemoved adds what is left of a row.
func (t *Tree) AddRemoved(left *storage.Tombstone) {
	t.Removed++
	t.forest.Add(receipt.EntryLeaf(left.Entry()))
}

// Root returns the root as [Import] has it.
func (t *Tree) Root() string { return rootText(t.forest.Root()) }

func rootText(root [sha256.Size]byte) string { return "sha256:" + hex.EncodeToString(root[:]) }

// Verifier verifies rows wherever they are from. Many rows are under one head, whose
// signature it verifies once. It is safe for concurrent use.
type Verifier struct {
	keys receipt.Keys

	mu    sync.Mutex
	known map[[sha256.Size]byte]struct{} // heads that are verified
}

// NewVerifier returns a Verifier that trusts keys.
func NewVerifier(keys receipt.Keys) *Verifier { return &Verifier{keys: keys} }

// Verify returns nil if r is the row that its receipt is of, and its settlement, if it
// has one, is its own, and keys have signed both.
func (v *Verifier) Verify(r *storage.Record) error {
	if err := VerifyRow(r); err != nil {
		return err
	}
	if err := v.leaf(r.Receipt.Inclusion(), r.Receipt.LeafHash()); err != nil {
		return err
	}
	return settlementLeaf(r, v.leaf)
}

// knownHeads bounds how many heads a Verifier remembers: some 3 MiB.
const knownHeads = 1 << 16

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
	_, known := v.known[sum]
	v.mu.Unlock()
	if known {
		return nil
	}
	if err := h.Verify(v.keys); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= knownHeads {
		v.known = make(map[[sha256.Size]byte]struct{})
	}
	v.known[sum] = struct{}{}
	return nil
}
