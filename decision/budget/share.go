package budget

import (
	"context"
	"errors"
	"strconv"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
)

// windowOf returns the shared window with the given key. The store finds it by each name that it may
// have for the agent: a decision knows the agent's key, and a settlement only its name in the history.
func (k *Counters) windowOf(of key, c *condition.Counter, agent, session string) storage.Window {
	w := storage.Window{
		Org: of.org, Counter: strconv.FormatInt(of.revision, 10) + " " + of.counter, Of: []string{of.of},
		Part: c.Bucket(), Parts: condition.Buckets,
	}
	if c.ByAgent && k.cfg.Scrub != nil {
		w.Of = w.Of[:0]
		for _, name := range k.cfg.Scrub.Stored(agent) {
			w.Of = append(w.Of, subject(c, name, session))
		}
	}
	return w
}

// begin returns the shared window of a cell. If the store does not keep it yet, begin
// reads it from the history and stores it.
func (k *Counters) begin(
	ctx context.Context, c *cell, names []string, at time.Time, turn condition.Turn,
) (*window, error) {
	name := k.windowOf(c.key, c.counter, c.agent, c.session)
	resume := condition.Paused(turn)
	granted, err := k.cfg.Windows.Count(ctx, name, storage.Ask{At: c.bucket})
	resume()
	if errors.Is(err, storage.ErrNotFound) {
		var w *window
		if w, err = k.read(ctx, c, names, at, turn); err == nil {
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

// forgetLocked drops a window if err says that the store does not keep it. Otherwise it returns
// err.
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

// refreshLocked asks the store for the count of a shared window, unless the count is known or
// does not matter. It reports whether it did not have to ask. If it asked, the caller must find
// the window again, because the lock is not held while refreshLocked waits.
func (k *Counters) refreshLocked(
	ctx context.Context, w *window, c *cell, at time.Time, turn condition.Turn,
) (known bool, err error) {
	if w.shared == nil || w.total(c.bucket)+c.amount <= c.counter.UpTo(0) || w.shared.IsKnown(at) {
		return true, nil
	}
	return false, k.forgetLocked(c.key, w, k.leases.Refresh(ctx, turn, w.shared, at, c.bucket))
}

// claim takes places for the cells of shared windows. The count of each window may rise to the
// upper bound of the count that the intent was evaluated with: see [condition.Counter.UpTo]. If
// the count of one window would rise above its bound, claim takes no places at all.
func (r *Reading) claim(ctx context.Context) (ok bool, err error) {
	k := r.counters
	k.leases.Lock()
	defer k.leases.Unlock()
	for i := range r.cells {
		c := &r.cells[i]
		if c.window == nil || c.window.shared == nil || r.own.has(c) {
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

// unclaimLocked gives back the places of the first n cells.
func (r *Reading) unclaimLocked(n int) {
	for i := range r.cells[:n] {
		if c := &r.cells[i]; c.window != nil && c.window.shared != nil && !r.own.has(c) {
			r.counters.unclaimLocked(c)
		}
	}
}

// unclaimLocked gives back the places of a cell.
func (k *Counters) unclaimLocked(c *cell) {
	c.window.held--
	k.leases.GiveBack(c.window.shared, c.claim, c.amount)
}
