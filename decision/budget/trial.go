package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/engine"
	"writ/engine/condition"
	"writ/storage"
)

// Trial returns what counters come to with an intent that is not decided. It reserves
// nothing, and keeps nothing of rules that are not stored.
func (k *Counters) Trial(
	ctx context.Context, org string, counters []*condition.Counter, in *engine.Intent, at time.Time,
	turn condition.Turn,
) ([]condition.Count, error) {
	r := k.cells(org, counters, in, at)
	for i := range r.cells {
		if err := k.try(ctx, &r.cells[i], at, turn); err != nil {
			return nil, fmt.Errorf("counting what was allowed: %w", err)
		}
	}
	return engine.Counts(counters, in, r.before), nil
}

// try finds what a cell had come to.
func (k *Counters) try(ctx context.Context, c *cell, at time.Time, turn condition.Turn) error {
	if k.cfg.Windows != nil && c.counter.Revision > 0 {
		resume := condition.Paused(turn)
		granted, err := k.cfg.Windows.Count(ctx, windowOf(c.key, c.counter), storage.Ask{At: c.bucket})
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
		c.before = c.window.total()
		return nil
	}
	w, err := k.read(ctx, c, at, turn)
	if err == nil {
		c.before = w.total()
	}
	return err
}
