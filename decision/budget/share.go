package budget

import (
	"context"
	"errors"
	"strconv"
	"time"

	"writ/engine/condition"
	"writ/storage"
	"writ/storage/lease"
)

func windowOf(k key, c *condition.Counter) storage.Window {
	return storage.Window{
		Org: k.org, Counter: strconv.FormatInt(k.revision, 10) + " " + k.counter, Of: k.of,
		Part: c.Bucket(), Parts: condition.Buckets,
	}
}

// begin returns the window of a cell that several processes count in. It has the store
// keep it, as the history has it, if it does not yet.
func (k *Counters) begin(ctx context.Context, c *cell, at time.Time, turn condition.Turn) (*window, error) {
	name := windowOf(c.key, c.counter)
	resume := condition.Paused(turn)
	granted, err := k.cfg.Windows.Count(ctx, name, storage.Ask{At: c.bucket})
	resume()
	if errors.Is(err, storage.ErrNotFound) {
		var w *window
		if w, err = k.read(ctx, c, at, turn); err == nil {
			defer condition.Paused(turn)()
			err = k.cfg.Windows.Begin(ctx, name, w.parts)
		}
		if err == nil {
			granted, err = k.cfg.Windows.Count(ctx, name, storage.Ask{At: c.bucket})
		}
	}
	shared := lease.New(name, 0)
	shared.Learn(granted.Total, at)
	return &window{shared: shared}, err
}

// forgetLocked forgets a window that the store does not keep, if that is what err says.
func (k *Counters) forgetLocked(of key, w *window, err error) error {
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if k.window(of) == w {
		delete(k.series[of.seriesKey].windows, of.of)
		k.kept--
	}
	return nil
}

// refreshLocked asks what a shared window has come to where that decides and is not known.
// It reports whether it was known; otherwise look for the window again. The lock is not held
// while it waits.
func (k *Counters) refreshLocked(
	ctx context.Context, w *window, c *cell, at time.Time, turn condition.Turn,
) (known bool, err error) {
	if w.shared == nil || w.total()+c.amount <= c.counter.UpTo(0) || w.shared.IsKnown(at) {
		return true, nil
	}
	return false, k.forgetLocked(c.key, w, k.leases.Refresh(ctx, turn, w.shared, at, c.bucket))
}

// claim takes the places for the cells of windows that several processes count in, as long
// as these come to no more than what the intent was evaluated with is taken for. Otherwise
// it takes none.
func (r *Reading) claim(ctx context.Context) (ok bool, err error) {
	k := r.counters
	k.leases.Lock()
	defer k.leases.Unlock()
	for i := range r.cells {
		c := &r.cells[i]
		if c.window.shared == nil || r.hold.holds(c) {
			continue
		}
		limit := c.counter.UpTo(condition.Saturated(c.before, c.amount))
		if limit == condition.MaxInteger {
			limit = lease.NoLimit
		}
		if c.claim, ok, err = k.leases.Take(ctx, r.turn, c.window.shared, r.at, c.bucket, limit, c.amount); !ok {
			r.unclaimLocked(i)
			return false, k.forgetLocked(c.key, c.window, err)
		}
		c.window.held++
	}
	return true, nil
}

// unclaimLocked gives back what claim took for the first n cells.
func (r *Reading) unclaimLocked(n int) {
	for i := range r.cells[:n] {
		if c := &r.cells[i]; c.window.shared != nil && !r.hold.holds(c) {
			r.counters.unclaimLocked(c)
		}
	}
}

// unclaimLocked ends the claim of a cell whose places are not used.
func (k *Counters) unclaimLocked(c *cell) {
	c.window.held--
	k.leases.GiveBack(c.window.shared, c.claim, c.amount)
}

// Run gives back to the store what is idle until ctx ends, and then everything.
func (k *Counters) Run(ctx context.Context) {
	if k.cfg.Windows != nil {
		k.leases.Run(ctx, func() {})
	}
}
