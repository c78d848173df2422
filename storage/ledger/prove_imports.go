package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Foreign counts imported rows.
type Foreign struct {
	// Organizations is the number of organizations with an import entry.
	Organizations int
	// Rows is the number of imported rows that still exist. Settled is the number of
	// settlements that were imported with rows.
	Rows, Settled int
	// Removed is the number of tombstones that were imported.
	Removed int
}

// imports compares the leaves under heads of other chains with the import entries.
type imports struct {
	heads Verifier

	mu   sync.Mutex
	orgs map[string]*imported
}

// imported has the foreign leaves of an organization.
type imported struct {
	entry  *Import // nil: there is none
	before bool    // the entry was proved before
	leaves []foreign
	// unlisted is the first foreign row if there is no entry. unlistedErr says why this
	// row is not under a head of the history.
	unlisted    uuid.UUID
	unlistedErr error
}

// foreign is an imported leaf.
type foreign struct {
	id         uuid.UUID
	leaf       [32]byte
	settlement bool
	removed    bool // the row was removed before the import
	exists     bool // the row was not removed after the import
}

func (i *imports) orgLocked(org string) *imported {
	if i.orgs[org] == nil {
		i.orgs[org] = new(imported)
	}
	return i.orgs[org]
}

func (i *imports) entry(e *storage.Entry, before bool) error {
	parsed, err := ParseImport(e)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	of := i.orgLocked(e.OrganizationID)
	if of.entry != nil {
		return fmt.Errorf("the organization has another import entry, %q", of.entry.ID)
	}
	of.entry, of.before = &parsed, before
	return nil
}

// rowLeaf proves the leaf of a decision or of its settlement. Unlike leaf, it accepts an
// imported leaf. It returns no chain for such a leaf.
func (p *prover) rowLeaf(
	r *storage.Record, in receipt.Inclusion, leaf [32]byte, settlement bool,
) (*provenChain, error) {
	if chain, err := in.Chain(); p.cfg.Partial || err != nil || p.chains[chain] != nil || p.later.hasChain(chain) {
		return p.leaf(in, leaf)
	}
	return nil, p.foreignLeaf(r, in, leaf, settlement)
}

// foreignLeaf proves a leaf of r that another store has signed. It adds the leaf to the import.
func (p *prover) foreignLeaf(r *storage.Record, in receipt.Inclusion, leaf [32]byte, settlement bool) error {
	id, err := uuid.Parse(r.DecisionID)
	if err != nil {
		return fmt.Errorf("its id: %w", err)
	}
	h, err := in.SignedHead(leaf)
	if err != nil {
		return err
	}
	unlisted := fmt.Errorf("its receipt is %w", p.listed(h.Chain, h.Seq))
	if r.Writer != "" {
		unlisted = fmt.Errorf("%w (writer %q decided it)", unlisted, r.Writer)
	}
	if err := p.imports.heads.leaf(in, leaf); err != nil {
		return fmt.Errorf("%w, and it does not verify by itself: %w", unlisted, err)
	}
	p.imports.add(r.OrganizationID, foreign{id: id, leaf: leaf, settlement: settlement, exists: true}, unlisted)
	return nil
}

// add adds a foreign leaf. unlisted says why the leaf is not under a head of the history.
func (i *imports) add(org string, f foreign, unlisted error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of := i.orgLocked(org)
	if of.entry != nil {
		if !of.before {
			of.leaves = append(of.leaves, f)
		}
		return
	}
	if of.unlistedErr == nil || bytes.Compare(f.id[:], of.unlisted[:]) < 0 {
		of.unlisted, of.unlistedErr = f.id, unlisted
	}
}

// tombstone adds the tombstone of a row that was removed before the import.
func (i *imports) tombstone(t *storage.Tombstone, id uuid.UUID) error {
	i.add(t.OrganizationID, foreign{id: id, leaf: receipt.EntryLeaf(t.Entry()), removed: true},
		errors.New("it was imported as one that had been removed"))
	return nil
}

// checkUnlisted returns an error for the first foreign row of an organization that has
// neither an import entry nor an import under way.
func (i *imports) checkUnlisted(ctx context.Context, h History) error {
	orgs := slices.DeleteFunc(slices.Sorted(maps.Keys(i.orgs)), func(org string) bool {
		return i.orgs[org].entry != nil
	})
	if len(orgs) == 0 {
		return nil
	}
	open := make(map[string]bool)
	if err := h.View(ctx, func(r storage.Reader) error {
		return r.Scan(storage.Query{Kind: storage.ImportKind, Every: true, Bare: true},
			func(_ []byte, d storage.Document) (bool, error) {
				open[d.Org] = true
				return true, nil
			})
	}); err != nil {
		return err
	}
	for _, org := range orgs {
		if of := i.orgs[org]; !open[org] {
			err := fmt.Errorf("%w; no import entry is of the organization", of.unlistedErr)
			return brokenRow(org, of.unlisted.String(), err)
		}
	}
	return nil
}

// prove compares the foreign leaves of each organization with its import entry. It returns
// the unfinished organizations that have no entry.
func (i *imports) prove(unfinished []string) (n Foreign, open []string, err error) {
	for _, org := range slices.Sorted(maps.Keys(i.orgs)) {
		of := i.orgs[org]
		if of.entry == nil || of.before {
			continue
		}
		n.Organizations++
		if err := of.prove(&n); err != nil {
			return n, nil, brokenOrg(org, fmt.Errorf("import %q: %w", of.entry.ID, err))
		}
	}
	for _, org := range unfinished {
		if of := i.orgs[org]; of == nil || of.entry == nil {
			open = append(open, org)
		}
	}
	slices.Sort(open)
	return n, open, nil
}

func (of *imported) prove(n *Foreign) error {
	// A decision and its settlement stay in the order in which they were added.
	slices.SortStableFunc(of.leaves, func(a, b foreign) int { return bytes.Compare(a.id[:], b.id[:]) })
	var forest receipt.Forest
	var rows, settled, removed int64
	for _, f := range of.leaves {
		switch forest.Add(f.leaf); {
		case f.removed:
			removed++
		case f.settlement:
			settled++
		default:
			rows++
			if f.exists {
				n.Rows++
			}
		}
	}
	n.Settled += int(settled)
	n.Removed += int(removed)
	e := of.entry
	if rows != e.Rows || settled != e.Settled || removed != e.Removed {
		return fmt.Errorf("it was signed for %d rows, %d settlements and %d removed rows, and %d, %d and %d exist",
			e.Rows, e.Settled, e.Removed, rows, settled, removed)
	}
	if rootText(forest.Root()) != e.Root {
		return errors.New("it was signed for other rows: one of them was swapped")
	}
	return nil
}
