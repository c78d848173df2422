package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// entriesAndTombstones proves all entries and tombstones.
func (p *prover) entriesAndTombstones(ctx context.Context, h History) error {
	announced := make(map[string]*removals)
	if err := h.EachEntry(ctx, func(e *storage.Entry) error {
		return p.entry(e, announced)
	}); err != nil {
		return err
	}
	for _, a := range announced {
		slices.SortFunc(a.all, func(x, y Removal) int { return x.Before.Compare(y.Before) })
		a.found = make([]storage.Expired, len(a.all))
	}
	orgs := []string{""}
	if p.cfg.Resume && !p.cfg.Partial { // a store finds those of an organization without reading all rows
		var err error
		if orgs, err = p.withTombstones(ctx, h, announced); err != nil {
			return err
		}
	}
	for _, org := range orgs {
		if err := h.EachTombstone(ctx, org, func(t *storage.Tombstone) error {
			if err := p.tombstone(t, announced[t.OrganizationID]); err != nil {
				return brokenRow(t.OrganizationID, t.DecisionID, err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for _, org := range slices.Sorted(maps.Keys(announced)) {
		if err := announced[org].check(); err != nil {
			return brokenOrg(org, err)
		}
	}
	return p.placeEarlier()
}

// entry proves e. It adds a removal to announced.
func (p *prover) entry(e *storage.Entry, announced map[string]*removals) error {
	_, err := p.leaf(e.Inclusion, receipt.EntryLeaf(e.Body))
	if err == nil {
		err = p.body(e, announced)
	}
	if err != nil {
		return brokenOrg(e.OrganizationID, fmt.Errorf("%s %q: %w", e.Kind, e.Key, err))
	}
	return nil
}

func (p *prover) body(e *storage.Entry, announced map[string]*removals) error {
	before := p.signedBefore(e.Inclusion, receipt.EntryLeaf(e.Body))
	switch e.Kind {
	case storage.ChangeEntry:
		c, err := ParseChange(e)
		if !before {
			p.changes++
		}
		if err == nil && !p.cfg.Partial {
			p.documents.changed(c)
		}
		return err
	case storage.RetentionEntry:
		r, err := parseBody(e, Removal.entry)
		if err != nil {
			return err
		}
		a := announced[e.OrganizationID]
		if a == nil {
			a = new(removals)
			announced[e.OrganizationID] = a
		}
		if a.all = append(a.all, r); !before {
			p.removals++
		}
		return nil
	case storage.VerdictEntry:
		return p.verdict(e, before)
	case storage.ImportEntry:
		return p.imports.entry(e, before)
	case storage.AbandonEntry: // the rows that it announced are gone
		_, err := parseBody(e, Abandonment.entry)
		return err
	}
	return errors.New("its kind is unknown")
}

// removals are the announced removals of an organization, ordered by Before. found has,
// for each removal, the number of tombstones that no earlier removal covers.
type removals struct {
	all   []Removal
	found []storage.Expired
}

// cover counts the tombstone of a decision. A tombstone has one leaf, or two if the
// decision had a settlement.
func (a *removals) cover(id uuid.UUID, leaves int) error {
	if leaves < 1 || leaves > 2 {
		return fmt.Errorf("%d leaves are left of it, and a decision has one and its settlement another", leaves)
	}
	if a != nil {
		i, _ := slices.BinarySearchFunc(a.all, timeOf(id), func(r Removal, at time.Time) int {
			if at.Before(r.Before.Add(-storage.MaxSkew)) {
				return 1
			}
			return -1
		})
		if i < len(a.all) {
			a.found[i].Records++
			a.found[i].Settled += leaves - 1
			return nil
		}
	}
	return errors.New("it was removed, and no retention entry covers it")
}

// check compares the numbers of tombstones with the announced numbers. If a removal
// covers a tombstone, all removals after it in the order of Before cover the tombstone
// too.
func (a *removals) check() error {
	var found, announced, settled, announcedSettled int64
	for i := len(a.all) - 1; i >= 0; i-- {
		found, announced = found+int64(a.found[i].Records), announced+a.all[i].Count
		settled, announcedSettled = settled+int64(a.found[i].Settled), announcedSettled+a.all[i].Settled
		if found > announced {
			return fmt.Errorf("%d rows were removed that only retention entries for %d cover", found, announced)
		}
		if settled > announcedSettled {
			return fmt.Errorf("%d settlements were removed that only retention entries for %d cover", settled,
				announcedSettled)
		}
	}
	return nil
}

// tombstone proves a tombstone. Its place under its head is proved by [prover.place].
func (p *prover) tombstone(t *storage.Tombstone, announced *removals) error {
	id, err := uuid.Parse(t.DecisionID)
	if err != nil {
		return fmt.Errorf("its id: %w", err)
	}
	if t.Imported {
		return p.imports.tombstone(t, id)
	}
	if err := announced.cover(id, len(t.Leaves)); err != nil {
		return err
	}
	p.verdicts.removed(t.OrganizationID, t.DecisionID)
	if len(t.Leaves) > 0 && t.ApprovalID == "" && p.chains[t.Leaves[0].Chain] != nil {
		p.found.removed(t.OrganizationID, id)
	}
	for i, l := range t.Leaves {
		if p.later.hasChain(l.Chain) {
			continue
		}
		if p.chains[l.Chain] == nil {
			p.imports.add(t.OrganizationID, foreign{id: id, leaf: l.Hash, settlement: i > 0},
				fmt.Errorf("its tombstone is %w", p.listed(l.Chain, l.Seq)))
			continue
		}
		if c := p.chains[l.Chain]; c.before(l.Seq) || p.later != nil && l.Seq > c.tip.Seq {
			continue
		}
		if err := p.listed(l.Chain, l.Seq); err != nil {
			return fmt.Errorf("its tombstone is %w", err)
		}
		c := p.chains[l.Chain]
		if p.later.skips(l.Chain, l.Seq) {
			continue
		}
		if p.later.again(l.Chain, l.Seq) {
			if err := p.placeAgain(l); err != nil {
				return err
			}
			continue
		}
		if err := p.count(c, l.Seq); err != nil {
			return err
		}
		p.removed.want(c, l.Seq)
		if err := p.place(l); err != nil {
			return err
		}
	}
	if p.removed.n++; t.DecisionID > p.removed.newest {
		p.removed.newest = t.DecisionID
	}
	return nil
}

// partialTrees are the trees of heads that sign a removed row. A tombstone has no inclusion
// proof, so its place is proved when all leaves of its head are known.
type partialTrees struct {
	n      int // tombstones
	newest string
	trees  map[headName]*partialTree // complete before rows are read
	// earlier has the leaves of entries, which are read before trees is complete.
	earlier  []receipt.Leaf
	complete bool // trees is complete
}

type headName struct {
	chain [16]byte
	seq   uint64
}

// want makes the tree of a head.
func (g *partialTrees) want(c *provenChain, seq uint64) {
	if at := (headName{c.tip.ID, seq}); g.trees[at] == nil {
		h := c.at(seq)
		g.trees[at] = &partialTree{root: h.root, left: int(h.size), leaves: make([][32]byte, h.size),
			there: make([]bool, h.size)}
	}
}

// wants reports whether the leaves of a head must be placed.
func (g *partialTrees) wants(chain [16]byte, seq uint64) bool {
	return !g.complete || g.trees[headName{chain, seq}] != nil
}

// partialTree is the tree of a head, some leaves of which are not known yet.
type partialTree struct {
	root [32]byte

	mu     sync.Mutex
	left   int
	leaves [][32]byte
	there  []bool
}

// place puts a leaf into the tree of its head, if that head has a tombstone. With the last
// leaf it verifies the root.
func (p *prover) place(l receipt.Leaf) error {
	g := &p.removed
	t := g.trees[headName{l.Chain, l.Seq}]
	if t == nil {
		if !g.complete {
			g.earlier = append(g.earlier, l)
		}
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if uint64(l.Index) >= uint64(len(t.there)) || t.there[l.Index] {
		return fmt.Errorf("%s has no room for it at leaf %d", p.name(p.chains[l.Chain], l.Seq), l.Index)
	}
	t.leaves[l.Index], t.there[l.Index] = l.Hash, true
	if t.left--; t.left > 0 {
		return nil
	}
	if receipt.Root(t.leaves) != t.root {
		return fmt.Errorf("%s does not sign all of its leaves", p.name(p.chains[l.Chain], l.Seq))
	}
	t.leaves = nil
	return nil
}

// placeEarlier places the leaves of entries once trees is complete.
func (p *prover) placeEarlier() error {
	g := &p.removed
	g.complete = true
	for _, l := range g.earlier {
		if err := p.place(l); err != nil {
			return p.brokenHead(p.chains[l.Chain], l.Seq, err)
		}
	}
	g.earlier = nil
	return nil
}
