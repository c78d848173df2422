package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// later has what a state after the first one may have besides.
type later struct {
	// chains are the chains that the first state does not have.
	chains map[[16]byte]bool
	// only, if it is not nil, are the heads whose leaves are looked for.
	only map[headName]bool
}

func (l *later) hasChain(chain [16]byte) bool { return l != nil && l.chains[chain] }

// has reports whether a head is not of the first state. c is its chain, or nil.
func (l *later) has(c *provenChain, h *receipt.SignedHead) bool {
	return l != nil && (l.chains[h.Chain] || c != nil && h.Seq > c.tip.Seq)
}

// skips reports whether the leaves of a head of the first state are not looked for any more, and again whether they
// are looked for once more.
func (l *later) skips(chain [16]byte, seq uint64) bool {
	return l != nil && l.only != nil && !l.only[headName{chain, seq}]
}

func (l *later) again(chain [16]byte, seq uint64) bool {
	return l != nil && l.only[headName{chain, seq}]
}

// laterRow reports whether a row is under a head that is not of the first state. It verifies such a row by itself.
func (p *prover) laterRow(r *storage.Record) (bool, error) {
	h, err := r.Receipt.Inclusion().SignedHead(r.Receipt.LeafHash())
	if err != nil || !p.later.has(p.chains[h.Chain], &h) {
		return false, nil //nolint:nilerr // proveRow returns it
	}
	p.verdicts.removed(r.OrganizationID, r.DecisionID)
	if err = VerifyRow(r); err == nil {
		err = h.Verify(p.cfg.Keys)
	}
	if err != nil {
		err = brokenRow(r.OrganizationID, r.DecisionID, err)
	}
	return true, err
}

// renew takes the present state of a history.
func (p *prover) renew(ctx context.Context, h History, r Renewable) error {
	if err := r.Renew(ctx); err != nil {
		return err
	}
	p.renewed++
	l := &later{chains: make(map[[16]byte]bool)}
	if p.later != nil {
		l.only = p.later.only
	}
	p.later = l
	return h.Chains(ctx, func(end receipt.Chain) error {
		if p.chains[end.ID] == nil {
			l.chains[end.ID] = true
		}
		return nil
	})
}

// meterRead is what a meter says.
type meterRead struct {
	org   string
	month storage.Month
	n     int64
}

// proveRenewed proves a history whose states are kept only for a while. Documents, indexes and meters are read first,
// because they must be of the same state as the heads. Where reading the rows takes longer, the rest is of later
// states: what was decided later is not counted. Rows that were removed meanwhile are found by their tombstones.
// r may be nil if the history is resumed.
func (p *prover) proveRenewed(ctx context.Context, h History, r Renewable) (Proof, error) {
	if err := p.documents.addUnsigned(ctx, h); err != nil {
		return Proof{}, err
	}
	var meters []meterRead
	check := storage.IndexCheck{Document: p.documents.document}
	if !p.cfg.Resume {
		check.Meter = func(org string, m storage.Month, n int64) error {
			meters = append(meters, meterRead{org, m, n})
			return nil
		}
	}
	found := h.CheckIndex(ctx, check)
	if broken := (*storage.BreakError)(nil); found != nil && !errors.As(found, &broken) {
		return Proof{}, found
	}
	if err := p.readRows(ctx, h, r); err != nil { // a break of a row comes before one of the index
		return Proof{}, err
	}
	if p.renewed > 0 {
		p.found.vanished = int64(p.missing())
	}
	for _, m := range meters {
		found = cmp.Or(found, p.found.meter(m.org, m.month, m.n))
	}
	if !p.cfg.Resume {
		found = cmp.Or(found, p.found.unmetered())
	}
	last, proof, err := p.again(ctx, h, r, found)
	if err == nil {
		err = p.documents.check()
	}
	if err != nil {
		return Proof{}, err
	}
	p.removed.n, p.removed.newest = last.removed.n, last.removed.newest
	foreign, unfinished := proof.Foreign, proof.Unfinished
	proof = p.proof()
	proof.Foreign, proof.Unfinished = foreign, unfinished
	return proof, nil
}

// maxPasses is how often rows are read again. Two more passes find every leaf that is there.
const maxPasses = 5

// again checks that p has found all leaves. If some are missing, and a newer state was taken while rows were read, they
// may have been removed. Then it reads entries, tombstones and rows once more, for the heads that lack leaves. It
// returns the last pass, and what this has found of imports. found is a break of an index or a meter, or nil.
//
// A leaf that the first of these passes misses was removed before its end, and so the second one reads its tombstone.
// Leaves that one has found stay found, although their rows may be removed.
func (p *prover) again(
	ctx context.Context, h History, r Renewable, found error,
) (last *prover, of Proof, err error) {
	last = p
	for n := 0; ; n++ {
		err = cmp.Or(last.imports.checkUnlisted(ctx, h), found, last.complete(), last.verdicts.check())
		if err == nil {
			of.Foreign, of.Unfinished, err = last.imports.prove(p.documents.unfinished)
		}
		if err == nil || last.renewed == 0 || n >= 2 && last.missing() > 0 {
			return last, of, err
		}
		if n == maxPasses {
			return nil, of, fmt.Errorf("rows are removed faster than they are read: %w", storage.ErrPast)
		}
		last = last.next()
		if err := last.renew(ctx, h, r); err != nil {
			return nil, of, err
		}
		last.renewed = 0
		if err := last.entriesAndTombstones(ctx, h); err != nil {
			return nil, of, err
		}
		if err := last.readRows(ctx, h, r); err != nil {
			return nil, of, err
		}
	}
}

// missing returns the number of leaves that were not found.
func (p *prover) missing() int { return p.leaves - int(p.proved.Load()) }

// next returns a prover that looks for the leaves of the heads of which p has not found all.
func (p *prover) next() *prover {
	n := newProver(p.cfg)
	n.several, n.later = p.several, &later{only: make(map[headName]bool)}
	first := p.later == nil || p.later.only == nil // it knows only how many leaves there were
	for _, c := range p.order {
		of := &provenChain{
			from: c.from, tip: c.tip, last: c.last, heads: c.heads, seen: make([]atomic.Uint32, len(c.heads)),
		}
		n.chains[c.tip.ID], n.order = of, append(n.order, of)
		for i, head := range c.heads {
			name, seen := headName{c.tip.ID, c.from + uint64(i) + 1}, c.seen[i].Load()
			if seen == head.size {
				of.seen[i].Store(seen)
				continue
			}
			n.later.only[name] = true
			n.leaves += int(head.size)
			if first {
				n.removed.want(of, name.seq)
				continue
			}
			n.removed.trees[name] = p.removed.trees[name]
			of.seen[i].Store(seen)
			n.proved.Add(int64(seen))
		}
	}
	return n
}

// placeAgain puts a leaf of a head that lacked leaves into its tree, unless it is there. With the last leaf it
// verifies the root.
func (p *prover) placeAgain(l receipt.Leaf) error {
	t, c := p.removed.trees[headName{l.Chain, l.Seq}], p.chains[l.Chain]
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case uint64(l.Index) >= uint64(len(t.there)), t.there[l.Index] && t.leaves[l.Index] != l.Hash:
		return fmt.Errorf("%s has no room for it at leaf %d", p.name(c, l.Seq), l.Index)
	case t.there[l.Index]:
		return nil
	}
	t.leaves[l.Index], t.there[l.Index] = l.Hash, true
	if t.left--; t.left == 0 && receipt.Root(t.leaves) != t.root {
		return fmt.Errorf("%s does not sign all of its leaves", p.name(c, l.Seq))
	}
	return p.count(c, l.Seq)
}
