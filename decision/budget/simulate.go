package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// Simulate returns the counts of counters for an intent that is not decided. It reserves
// nothing. If a rule is not stored, Simulate does not keep the windows of the rule's counters.
func (k *Counters) Simulate(
	ctx context.Context, org string, counters []*condition.Counter, in *engine.Input, at time.Time,
) ([]condition.Count, error) {
	r := k.cells(org, counters, in, at)
	for i := range r.cells {
		if err := k.simulate(ctx, &r.cells[i], at, in.Turn); err != nil {
			return nil, fmt.Errorf("reading the counters of rules: %w", err)
		}
	}
	return r.known(engine.Counts(counters, in.Intent, r.before)), nil
}

// simulate reads the count of the cell c and stores it in c.before.
func (k *Counters) simulate(ctx context.Context, c *cell, at time.Time, turn condition.Turn) error {
	if k.cfg.Windows != nil && c.counter.Revision > 0 {
		resume := condition.Paused(turn)
		window := k.windowOf(c.key, c.counter, c.agent, c.session)
		granted, err := k.cfg.Windows.Count(ctx, window, storage.Ask{At: c.bucket})
		resume()
		if c.before = granted.Total; !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	if k.cfg.Windows == nil && c.counter.Revision > 0 {
		if err := k.find(ctx, c, at, turn); err != nil {
			return err
		}
		k.leases.Lock()
		defer k.leases.Unlock()
		if c.window != nil {
			c.before = c.window.total(c.bucket)
		}
		return nil
	}
	w, err := k.read(ctx, c, k.spellings(c), at, turn)
	if err == nil {
		c.before = w.total(c.bucket)
	}
	return err
}
