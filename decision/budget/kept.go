package budget

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage/lease"
)

// everything is the part of a key that stands for all windows of a series. No window has it, because
// no id contains a line feed.
const everything = "\n\n"

// subjects returns the texts for the names that the history may have for the agent of c.
func subjects(c *cell, names []string) []string {
	if len(names) == 0 {
		return []string{c.key.of}
	}
	of := make([]string, 0, len(names))
	for _, name := range names {
		of = append(of, subject(c.counter, name, c.session))
	}
	return of
}

// readsLocked returns the next read for a window that is not in memory: the series must be open.
func (k *Counters) readsLocked(c *cell) key {
	if s := k.series[c.key.seriesKey]; k.keeper != nil && (s == nil || !s.kept.covers(first(c.bucket))) {
		return key{c.key.seriesKey, everything}
	}
	return c.key
}

// openLocked waits for the series of c to be opened. It reports true if that takes longer than reading [fillEarly]
// rows. It unlocks k.
func (k *Counters) openLocked(
	ctx context.Context, c *cell, of key, at time.Time, turn condition.Turn,
) (waits bool, err error) {
	r, busy := k.reading[of]
	if !busy && k.life.Err() == nil {
		of.org = strings.Clone(of.org)
		r = &reading{done: make(chan struct{}), early: make(chan struct{})}
		k.reading[of] = r
		opened := *c
		opened.key.seriesKey = of.seriesKey
		k.opens.Go(func() { k.openKept(&opened, of, r, at) })
	}
	k.leases.Unlock()
	if r == nil {
		return false, k.life.Err()
	}
	if err := lease.Await(ctx, turn, r.early); err != nil {
		return false, err
	}
	k.leases.Lock()
	defer k.leases.Unlock()
	if c.window = nil; k.reading[of] == r {
		c.until = r.until
		return true, nil
	}
	if r.err != nil {
		return false, fmt.Errorf("reading the counters of rules: %w", r.err)
	}
	return false, nil
}

// openKept opens the series of c in the journal.
func (k *Counters) openKept(c *cell, of key, r *reading, at time.Time) {
	f := filling{since: since(c, at), at: at, began: time.Now(), early: k.keeper.early, wait: func(until time.Time) {
		k.leases.Lock()
		defer k.leases.Unlock()
		if r.until.IsZero() {
			close(r.early)
		}
		r.until = until
	}}
	kept, err := k.keeper.open(k.life, of.seriesKey, c.counter, first(c.bucket), &f)
	k.leases.Lock()
	defer k.leases.Unlock()
	if r.err = err; err == nil {
		s := k.seriesLocked(c, at)
		s.kept = kept
		s.behind++
	}
	delete(k.reading, of)
	if close(r.done); r.until.IsZero() {
		close(r.early)
	}
}

// take reads the window of c from the journal and keeps it. names are the names of the agent in the history. take
// reports false if the window must be read from the history: there is no journal, or another agent has one of these
// names too. Then their windows overlap.
func (k *Counters) take(ctx context.Context, c *cell, r *reading, names []string, at time.Time) (bool, error) {
	if k.keeper == nil {
		return false, nil
	}
	of := subjects(c, names)
	k.leases.Lock()
	defer k.leases.Unlock()
	s := k.series[c.key.seriesKey]
	if s == nil || s.kept == nil {
		return true, nil // the caller finds no window, and opens the series again
	}
	if slices.ContainsFunc(of, func(of string) bool { return s.windows[s.named[of]] != nil || s.windows[of] != nil }) {
		return false, nil
	}
	w, kept := &window{}, s.kept
	if err := k.readKept(ctx, s, of, c.bucket, w); err != nil {
		return false, err
	}
	if k.series[c.key.seriesKey] == s && s.kept == kept && w.covers(c.bucket) {
		k.keep(c, w, r, names, at)
	}
	return true, nil
}

// readKept reads w from the journal for the subjects of. It releases the lock of k meanwhile.
func (k *Counters) readKept(ctx context.Context, s *series, of []string, now int64, w *window) error {
	kept, behind := s.kept, s.behind
	follow := s.caught != behind
	k.leases.Unlock()
	defer k.leases.Lock()
	if follow {
		if err := k.keeper.follow(ctx); err != nil {
			return err
		}
		k.leases.Lock()
		s.caught = max(s.caught, behind)
		k.leases.Unlock()
	}
	return k.keeper.read(kept, of, now, w)
}
