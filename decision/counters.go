package decision

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// Counts returns the counts of the rules' counters for an intent that is only simulated. It
// reserves nothing.
func (s *Service) Counts(
	ctx context.Context, org string, rules *engine.RuleSet, in *engine.Input,
) ([]condition.Count, error) {
	return s.counters.Simulate(ctx, org, rules.Counters(), in, s.cfg.Now())
}

// Settler is the credential that records a settlement.
type Settler struct {
	Credential string // in the form of [ledger.Entry], not scrubbed
	// Releases says that the settlements of the credential may lower the counts of rules, whoever
	// decided.
	Releases bool
}

// Settle settles a decision as [ledger.Ledger.Settle] does, and counts the settlement in the
// counters of the organization's rules.
func (s *Service) Settle(
	ctx context.Context, org, decisionID string, by Settler, settlement storage.Settlement,
) (settled *storage.Record, first bool, err error) {
	if settlement.Releases, err = s.releases(ctx, org, decisionID, by, &settlement); err != nil {
		return nil, false, err
	}
	rules, err := s.Sets.Rules(ctx, nil, org)
	if err != nil {
		return nil, false, fmt.Errorf("loading the rules that count: %w", err)
	}
	settling, err := s.counters.Settling(ctx, rules.Counters(), org, decisionID, settlement, s.cfg.Now())
	if err != nil {
		return nil, false, fmt.Errorf("counting a settlement: %w", err)
	}
	settled, first, err = s.cfg.Ledger.Settle(ctx, org, decisionID, settlement)
	first = first && err == nil
	if err == nil || ctx.Err() == nil && !errors.Is(err, storage.ErrUnknown) { // it is known whether it is stored
		settling.End(context.WithoutCancel(ctx), first)
	}
	return settled, first, err
}

// releases reports whether a settlement may lower the counts of rules. A key that decides
// and settles would have no limit: it could call each action failed. So a settlement releases only if
// by is of another family than the credential that asked for the decision, or has the scope.
func (s *Service) releases(
	ctx context.Context, org, decisionID string, by Settler, settlement *storage.Settlement,
) (bool, error) {
	if settlement.Outcome == storage.Executed && settlement.AmountMinor == nil {
		return false, nil // lowers no count
	}
	row, err := s.Store.Record(ctx, org, decisionID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return false, nil // the ledger refuses the settlement
	case err != nil:
		return false, fmt.Errorf("looking up a decision: %w", err)
	case row.Decision != engine.Allow || row.Settlement != nil:
		return false, nil
	case by.Releases:
		return true, nil
	}
	related, err := s.Approvals.Related(ctx, row, by.Credential)
	if err != nil {
		return false, fmt.Errorf("looking up who made a key: %w", err)
	}
	return !related, nil
}

// count evaluates an item with the counts of its rules' counters, and applies the item's
// approval. If the item is allowed, count reserves the amounts that it adds to the counters.
func (b *batch) count(ctx context.Context, set engine.Set, it *item) (err error) {
	ctx, span := b.span(ctx, "decide")
	defer span.End()
	in, at := it.entry.Intent, it.entry.Reservation.Time()
	b.input = engine.Input{
		Intent:            in,
		DecidedAt:         at,
		Stopped:           set.Stopped,
		Agent:             set.Agent,
		Names:             set.Names,
		RequireRegistered: b.cfg.RequireRegistered,
		Usage:             engine.Usage{Exceeded: it.exceeded},
		Keep:              b.cfg.Ledger.Keeper(),
		Turn:              b.who.Slot,
		Ended:             ctx.Done(),
	}
	if b.input.Session, err = b.session(ctx, in); err != nil {
		return err
	}
	if it.approval != nil {
		b.input.Approval = &engine.Approval{ID: it.entry.ApprovalID, Status: string(it.status)}
	}
	for {
		if it.counted, err = b.counters.Read(ctx, b.who.Organization, set.Rules.Counters(), &b.input,
			at); err != nil {
			return err
		}
		b.input.Counts = it.counted.Counts()
		result, err := b.evaluate(ctx, set, it)
		if err != nil {
			return err
		}
		if it.approval != nil {
			result, it.entry.Verdict = it.approval.Redeem(it.status, at, result)
		}
		if it.entry.Result = result; result.Decision != engine.Allow {
			return nil
		}
		if reserved, err := it.counted.Reserve(ctx); reserved || err != nil {
			return err
		}
	}
}
