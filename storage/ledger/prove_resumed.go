package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// resumeChain begins a chain at its anchor, if the history is resumed and the chain has one. end is the sequence of
// the chain's last head.
func (p *prover) resumeChain(ctx context.Context, h History, c *provenChain, end uint64) error {
	if !p.cfg.Resume {
		return nil
	}
	for i := range p.cfg.Anchors {
		a := &p.cfg.Anchors[i]
		if a.Chain != c.tip.ID {
			continue
		}
		if c.from > 0 {
			return fmt.Errorf("chain %x has two anchors, at head %d and at head %d: want one", a.Chain, c.from, a.Seq)
		}
		if err := a.Verify(p.cfg.Keys); err != nil {
			return p.brokenHead(c, a.Seq, fmt.Errorf("the anchor does not verify with these keys: %w", err))
		}
		if a.Seq == 0 || a.Seq > end {
			return p.brokenHead(c, a.Seq,
				fmt.Errorf("it was kept as the anchor, and the history ends at head %d", end))
		}
		is, err := headAt(ctx, h, c.tip.ID, a.Seq)
		if err != nil {
			return err
		}
		if is.Seq != a.Seq || sumOf(&is) != sumOf(a) {
			return p.brokenHead(c, a.Seq, errors.New("it is not the one that was kept as the anchor"))
		}
		c.from, c.last, c.tip = a.Seq, *a, c.tip.Next(a.Head)
	}
	return nil
}

// headAt returns the first head of a chain from a sequence on.
func headAt(ctx context.Context, h History, chain [16]byte, seq uint64) (is receipt.SignedHead, err error) {
	enough := errors.New("enough")
	err = h.Heads(ctx, chain, seq, func(head receipt.SignedHead) error {
		is = head
		return enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return is, err
}

// signedBefore reports whether a leaf is under a head that is not after the anchor of its chain.
func (p *prover) signedBefore(in receipt.Inclusion, leaf [32]byte) bool {
	if !p.cfg.Resume {
		return false
	}
	h, err := in.SignedHead(leaf)
	return err == nil && p.chains[h.Chain].before(h.Seq)
}

// withTombstones returns the organizations that may have tombstones: those with rows, announced removals or an
// import. The entries are read.
func (p *prover) withTombstones(ctx context.Context, h History, announced map[string]*removals) ([]string, error) {
	orgs := slices.AppendSeq(slices.Collect(maps.Keys(announced)), maps.Keys(p.imports.orgs))
	err := h.Organizations(ctx, func(org string) error {
		orgs = append(orgs, org)
		return nil
	})
	slices.Sort(orgs)
	return slices.Compact(orgs), err
}

// resumeSpan is how long before the first head after the anchors a row of it is looked for first. A commit takes less
// than a second. A settlement often comes later, and then older rows are read.
const resumeSpan = time.Hour

// readLaterRows proves the rows under the heads after the anchors. It reads the newest rows, and earlier ones while a
// leaf is missing. Imported rows can be of any time. n is into how many parts the rows of an organization are divided.
func (p *prover) readLaterRows(ctx context.Context, h History, r Renewable, orgs []string, n int) error {
	first, bounds, newest := p.firstLater(), p.bounds(n), true
	for span := resumeSpan; ; span *= 16 {
		from := ""
		if at := first.Add(-span); at.UnixMilli() > 0 {
			from = storage.IDAt(at).String()
		}
		bounds[0] = from
		parts := partsOf(orgs, bounds)
		for _, w := range parts {
			if newest && w.after == from && p.imports.later(w.org) {
				w.after = ""
			}
		}
		if err := p.readParts(ctx, h, r, parts); err != nil {
			return err
		}
		if p.missing() <= 0 || from == "" || p.cfg.Partial {
			return p.readParts(ctx, h, r, p.namedParts())
		}
		bounds, newest = []string{"", from}, false
		orgs = slices.DeleteFunc(orgs, p.imports.later) // all of their rows were read
	}
}

// later reports whether an organization has an import entry that was not proved before.
func (i *imports) later(org string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	of := i.orgs[org]
	return of != nil && of.entry != nil && !of.before
}

// firstLater returns the time of the first head after the anchors. Without one, it is the time of the last anchor.
func (p *prover) firstLater() time.Time {
	var first, last int64
	for _, c := range p.order {
		if len(c.heads) > 0 && (first == 0 || c.heads[0].at < first) {
			first = c.heads[0].at
		}
		last = max(last, c.last.UnixMilli)
	}
	if first == 0 {
		first = last
	}
	return time.UnixMilli(first)
}

// namedParts returns a part for each decision that a later verdict names and that was not read. It may be old.
func (p *prover) namedParts() (parts []*readPart) {
	if p.cfg.Partial {
		return nil
	}
	for name, d := range p.verdicts.named {
		id, err := uuid.Parse(name.id)
		if err != nil || d.found.Load() {
			continue
		}
		parts = append(parts, &readPart{org: name.org, after: storage.IDAt(storage.IDTime(id).Add(-1)).String(),
			upTo: name.id, only: name.id})
	}
	return parts
}
