package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// VerifyRow returns nil if r matches its receipt. If r is an older row without an audit
// digest, only its [Payload] is compared. VerifyRow does not verify the receipt's
// signature: see [receipt.Verify].
func VerifyRow(r *storage.Record) error {
	if r.Receipt.Decision != r.Decision.String() {
		return fmt.Errorf("its row says %s and its receipt %.32q", r.Decision, r.Receipt.Decision)
	}
	if r.AuditDigest != "" && !isOfAuditDigest(r) {
		return errors.New("its row is not the one of its audit digest")
	}
	return receipt.VerifyPayload(r.Receipt, Payload(r))
}

// VerifySettlement returns nil if r has no settlement, or if trusted keys have signed its
// settlement.
func VerifySettlement(r *storage.Record, keys receipt.Keys) error {
	return settlementLeaf(r, func(in receipt.Inclusion, leaf [32]byte) error { return in.Verify(leaf, keys) })
}

// settlementLeaf calls prove with the leaf of r's settlement, if r has one. It returns an
// error if the settlement cannot belong to r's decision.
func settlementLeaf(r *storage.Record, prove func(receipt.Inclusion, [32]byte) error) error {
	if r.Settlement == nil {
		return nil
	}
	if err := checkSettlement(r); err != nil {
		return err
	}
	if err := prove(*r.Settlement.Receipt, receipt.EntryLeaf(r.SettlementEntry().Body)); err != nil {
		return fmt.Errorf("its settlement: %w", err)
	}
	return nil
}

// checkSettlement returns an error if r's settlement cannot belong to its decision.
func checkSettlement(r *storage.Record) error {
	s := r.Settlement
	switch {
	case !storage.IsOutcome(s.Outcome):
		return fmt.Errorf("its settlement has the outcome %.32q", s.Outcome)
	case s.AmountMinor != nil && (*s.AmountMinor < 0 || *s.AmountMinor > condition.MaxInteger):
		return fmt.Errorf("its settlement has the amount %d", *s.AmountMinor)
	case s.RecordedAt.Before(r.DecidedAt.Add(-storage.MaxSkew)):
		return fmt.Errorf("it was settled at %s, before it was decided at %s", s.RecordedAt.Format(time.RFC3339),
			r.DecidedAt.Format(time.RFC3339))
	case s.Receipt == nil:
		return errors.New("its settlement has no receipt")
	case s.Unapproved != (s.Outcome == storage.Executed && r.Decision != engine.Allow):
		return fmt.Errorf("its settlement is marked unapproved: %t, and its decision is %s", s.Unapproved, r.Decision)
	}
	return nil
}

// row proves r and adds r to the sums in of.
func (p *prover) row(r *storage.Record, of *read) error {
	// An imported row has no verdicts here, because they stayed in the other store.
	chain, err := r.Receipt.Inclusion().Chain()
	own := err == nil && !p.cfg.Partial && p.chains[chain] != nil
	id, err := p.placed(r)
	if err == nil && p.later != nil {
		if is, err := p.laterRow(r); is || err != nil {
			return err
		}
	}
	if err == nil {
		err = p.proveRow(r, own)
	}
	if err != nil {
		return brokenRow(r.OrganizationID, r.DecisionID, err)
	}
	if p.signedBefore(r.Receipt.Inclusion(), r.Receipt.LeafHash()) {
		return nil
	}
	of.n++
	of.Add(id, r)
	if r.Metered() && own {
		if of.months == nil {
			of.months = make(map[storage.Month]int64)
		}
		of.months[storage.MonthOf(r.DecidedAt)]++
	}
	if n := int(p.rows.Add(1)); n%progressEvery == 0 {
		p.cfg.Progress.Tell("rows", n, p.leaves)
	}
	return nil
}

// placed returns r's id. It returns an error if no store can have written a row with r's
// id and time.
func (p *prover) placed(r *storage.Record) (uuid.UUID, error) {
	id, err := uuid.Parse(r.DecisionID)
	switch {
	case err != nil:
		return id, fmt.Errorf("its id: %w", err)
	case r.Decision < engine.Allow || r.Decision > engine.Deny:
		return id, errors.New("its row has no decision")
	case id.Version() != 7 || r.DecidedAt.Sub(storage.IDTime(id)).Abs() > storage.MaxSkew:
		return id, fmt.Errorf("its id is not of the time at which it was decided, %s", r.DecidedAt)
	}
	return id, nil
}

const progressEvery = 1024

func (p *prover) proveRow(r *storage.Record, own bool) error {
	if err := cmp.Or(VerifyRow(r), p.verdicts.row(r, own)); err != nil {
		return err
	}
	if r.AuditDigest == "" {
		p.older.Add(1)
	}
	c, err := p.rowLeaf(r, r.Receipt.Inclusion(), r.Receipt.LeafHash(), false)
	if err != nil && r.Writer != "" {
		return fmt.Errorf("%w (writer %q decided it)", err, r.Writer)
	}
	if err != nil {
		return err
	}
	if c == nil && p.cfg.Partial {
		p.unlisted.Add(1)
	}
	return settlementLeaf(r, func(in receipt.Inclusion, leaf [32]byte) error {
		if !p.signedBefore(in, leaf) {
			p.settled.Add(1)
		}
		_, err := p.rowLeaf(r, in, leaf, true)
		return err
	})
}
