package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// provenChain is a chain whose heads are all verified, or those after the anchor from which it is resumed.
type provenChain struct {
	from  uint64        // the sequence of this anchor, or 0
	tip   receipt.Chain // after its last head
	last  receipt.SignedHead
	heads []provenHead    // by sequence, from the one after from on
	seen  []atomic.Uint32 // the number of leaves that are proved, by head
}

// at returns a head after the anchor.
func (c *provenChain) at(seq uint64) *provenHead { return &c.heads[seq-c.from-1] }

// before reports whether a head is not read, because it is not after the anchor. c may be nil.
func (c *provenChain) before(seq uint64) bool { return c != nil && seq > 0 && seq <= c.from }

// provenHead is the part of a verified head that Prove keeps in memory.
type provenHead struct {
	sum  [sha256.Size]byte // of head, signature and key id
	root [sha256.Size]byte
	at   int64 // Unix milliseconds
	size uint32
}

// headRun is the number of heads that are verified at a time. It is large enough to keep
// all processors busy.
const headRun = 4096

// readChains verifies all heads of all chains and compares them with the anchors.
func (p *prover) readChains(ctx context.Context, h History) error {
	var ends []receipt.Chain
	if err := h.Chains(ctx, func(end receipt.Chain) error {
		ends = append(ends, end)
		return nil
	}); err != nil {
		return err
	}
	p.several = len(ends) > 1
	slices.SortFunc(ends, func(a, b receipt.Chain) int { return slices.Compare(a.ID[:], b.ID[:]) })
	for _, end := range ends {
		if p.chains[end.ID] != nil {
			return fmt.Errorf("the history lists chain %x twice", end.ID)
		}
		c := &provenChain{tip: receipt.Chain{ID: end.ID}}
		p.chains[end.ID] = c
		p.order = append(p.order, c)
		if err := p.resumeChain(ctx, h, c, end.Seq); err != nil {
			return err
		}
		if err := p.readHeads(ctx, h, c); err != nil {
			return err
		}
		if c.tip != end {
			return p.brokenHead(c, end.Seq,
				fmt.Errorf("the chain ends there, and its heads end at head %d or with another", c.tip.Seq))
		}
		c.seen = make([]atomic.Uint32, len(c.heads))
	}
	for i := range p.cfg.Anchors {
		if err := p.checkAnchor(&p.cfg.Anchors[i]); err != nil {
			return err
		}
	}
	return nil
}

// brokenHead returns a break at a head. The break names the chain if there are several
// chains.
func (p *prover) brokenHead(c *provenChain, seq uint64, err error) error {
	broken := &storage.BreakError{Head: seq, Err: err}
	if p.several {
		broken.Chain = c.tip.ID
	}
	return broken
}

// readHeads verifies the heads of a chain, headRun at a time.
func (p *prover) readHeads(ctx context.Context, h History, c *provenChain) error {
	var run []receipt.SignedHead
	verify := func() error {
		err := p.verifyHeads(c, run)
		run = run[:0]
		return err
	}
	if err := h.Heads(ctx, c.tip.ID, c.tip.Seq+1, func(head receipt.SignedHead) error {
		if run = append(run, head); len(run) < headRun {
			return nil
		}
		return verify()
	}); err != nil {
		return err
	}
	return verify()
}

// verifyHeads verifies the heads that follow c's tip, on all processors.
func (p *prover) verifyHeads(c *provenChain, run []receipt.SignedHead) error {
	if len(run) == 0 {
		return nil
	}
	const some = 64
	pieces := slices.Collect(slices.Chunk(run, some))
	err := inParallel(len(pieces), func(i int) error {
		from := c.tip
		if i > 0 { // the head before this piece is verified with its own piece
			from = from.Next(run[i*some-1].Head)
		}
		_, err := receipt.VerifyChain(from, slices.Values(pieces[i]), p.cfg.Keys)
		return err
	})
	if broken := (*receipt.ChainError)(nil); errors.As(err, &broken) {
		return p.brokenHead(c, broken.Seq, broken.Err)
	} else if err != nil {
		return err
	}
	for i := range run {
		c.heads = append(c.heads,
			provenHead{sum: sumOf(&run[i]), root: run[i].Root, at: run[i].UnixMilli, size: run[i].Size})
		p.leaves += int(run[i].Size)
	}
	c.last = run[len(run)-1]
	c.tip = c.tip.Next(c.last.Head)
	p.heads += len(run)
	p.cfg.Progress.Tell("heads", p.heads, p.heads)
	return nil
}

// sumOf returns the SHA-256 of h's bytes, signature and key id.
func sumOf(h *receipt.SignedHead) [sha256.Size]byte {
	var buf [512]byte
	return sha256.Sum256(append(append(append(buf[:0], h.Bytes()...), h.Sig[:]...), h.KeyID...))
}

// checkAnchor returns an error if the chain of an anchor does not contain it.
func (p *prover) checkAnchor(a *receipt.SignedHead) error {
	c := p.chains[a.Chain]
	if c == nil {
		c = &provenChain{tip: receipt.Chain{ID: a.Chain}}
	}
	broken := func(format string, args ...any) error { return p.brokenHead(c, a.Seq, fmt.Errorf(format, args...)) }
	switch err := a.Verify(p.cfg.Keys); {
	case err != nil:
		return broken("the anchor does not verify with these keys: %w", err)
	case len(p.chains) == 0:
		return broken("it was kept as the anchor, and the history has no heads")
	case p.chains[a.Chain] == nil:
		return broken("the anchor is of chain %x, of which the history has no head", a.Chain)
	case a.Seq == 0 || a.Seq > c.tip.Seq:
		return broken("it was kept as the anchor, and the history ends at head %d", c.tip.Seq)
	case c.before(a.Seq): // resumeChain has compared it
	case c.at(a.Seq).sum != sumOf(a):
		return broken("it is not the one that was kept as the anchor")
	}
	return nil
}

func (p *prover) unanchored() (n int) {
	for id := range p.chains {
		if !slices.ContainsFunc(p.cfg.Anchors, func(a receipt.SignedHead) bool { return a.Chain == id }) {
			n++
		}
	}
	return n
}
