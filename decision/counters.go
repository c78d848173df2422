package decision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/decision/budget"
	"writ/engine"
	"writ/engine/condition"
	"writ/ledger"
	"writ/storage"
)

// Counts returns what the counters of rules come to with an intent that is decided as a
// trial. It reserves nothing.
func (p *Pipeline) Counts(ctx context.Context, org string, rules *engine.RuleSet, in *engine.Intent, turn condition.Turn) ([]condition.Count, error) {
	return p.counters.Trial(ctx, org, rules.Counters(), in, p.cfg.Now(), turn)
}

// Run gives places in counters that replicas share back while they are idle, until ctx
// ends, and then all.
func (p *Pipeline) Run(ctx context.Context) { p.counters.Run(ctx) }

// Settle is [ledger.Ledger.Settle]. The counters of the organization's rules take it into
// account.
func (p *Pipeline) Settle(ctx context.Context, org, decisionID string, s storage.Settlement) (settled *storage.Record, first bool, err error) {
	rules, err := p.cfg.Sets.Rules(ctx, nil, org)
	if err != nil {
		return nil, false, fmt.Errorf("loading the rules that count: %w", err)
	}
	settling, err := p.counters.Settling(ctx, rules.Counters(), org, decisionID, s, p.cfg.Now())
	if err != nil {
		return nil, false, fmt.Errorf("counting a settlement: %w", err)
	}
	settled, first, err = p.cfg.Ledger.Settle(ctx, org, decisionID, s)
	first = first && err == nil
	if err == nil || ctx.Err() == nil && !errors.Is(err, storage.ErrUnknown) { // otherwise what was counted of it stays
		settling.End(context.WithoutCancel(ctx), settled, first)
	}
	return settled, first, err
}

// count evaluates an intent with what the counters of its rules have come to, and reserves
// what it adds where it is allowed after what redeem makes of the result.
func (b *batch) count(ctx context.Context, set engine.Set, in *engine.Input, at time.Time, redeem func(engine.Result) engine.Result) (engine.Result, *budget.Reading, error) {
	samples := len(b.samples)
	for {
		r, err := b.counters.Read(ctx, b.who.Organization, set.Rules.Counters(), in.Intent, at, in.Turn)
		if err != nil {
			return engine.Result{}, nil, err
		}
		in.Counts = r.Counts()
		result, err := b.evaluate(ctx, set, in)
		if err != nil {
			return engine.Result{}, nil, err
		}
		if result = redeem(result); result.Decision != engine.Allow {
			return result, r, nil
		}
		reserved, err := r.Reserve(ctx)
		if reserved || err != nil {
			return result, r, err
		}
		b.samples = b.samples[:samples]
	}
}

// count ends what the item has reserved, by what stands.
func (it *item) count(stands ledger.Outcome) {
	if stands.Err == nil && !stands.Replayed && stands.Record.Decision == engine.Allow {
		it.counted.Commit()
	} else {
		it.counted.Release()
	}
}

// doubt ends what was reserved for what was not answered: it stays counted where nobody
// knows whether it is stored.
func (b *batch) doubt(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, storage.ErrUnknown) {
		b.uncount()
		return
	}
	for i := range b.items {
		b.items[i].counted.Commit()
	}
}

// uncount gives back what was reserved in counters.
func (b *batch) uncount() {
	for i := range b.items {
		b.items[i].counted.Release()
	}
}
