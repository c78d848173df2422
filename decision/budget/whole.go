package budget

import (
	"context"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// A process that decides alone reads all windows of a counter at once, because reading one of them
// takes as long: each is in the same rows. From then on the process counts every allowance itself, so a
// key without a window has counted nothing. If there is a journal, it keeps the windows, and they are read
// from it one by one.

// everything is the part of a key that stands for all windows of a series. No window has it, because
// no id contains a line feed.
const everything = "\n\n"

// whole has the windows of a series that were read together and that no intent has asked for since. Their
// keys have the names of agents in the history.
type whole struct {
	read    uint64 // as in window
	windows map[string]*window
	// kept is the series in the journal. It is nil if there is none. With it, windows has only what settlements
	// add that are about to be stored. open is the number of settlements that may be in windows.
	kept *kept
	open int
	// The journal must be followed before a window is read from it, unless caught is behind.
	behind, caught uint64
}

// readsLocked returns what is read next for a window that is not kept.
func (k *Counters) readsLocked(of key) key {
	s := k.series[of.seriesKey]
	if k.cfg.Windows == nil && (s == nil || s.whole == nil && !s.apart) {
		return key{of.seriesKey, everything}
	}
	return of
}

// readAll reads all windows of the counter of c. If they are too many to be kept, the windows of the series
// are read one by one from then on.
func (k *Counters) readAll(ctx context.Context, c *cell, at time.Time, turn condition.Turn, most int) error {
	if k.keeper != nil {
		return k.openKept(ctx, c, at, turn)
	}
	all := make(map[string]*window)
	err := k.eachRow(ctx, c, nil, at, turn, func(row *storage.Record, amount int64) bool {
		of := subject(c.counter, row.AgentID, row.SessionID)
		w := all[of]
		if w == nil {
			w = &window{}
			all[strings.Clone(of)] = w
		}
		w.add(bucketAt(c.counter, row.DecidedAt), amount)
		return len(all) <= most
	})
	if err != nil {
		return err
	}
	k.leases.Lock()
	defer k.leases.Unlock()
	s := k.seriesLocked(c, at)
	if len(all) > most {
		s.apart = true
		return nil
	}
	k.reads++
	for _, w := range all {
		w.read = k.reads
	}
	s.whole = &whole{read: k.reads, windows: all}
	k.kept += len(all)
	return nil
}

// openKept opens the series of c in the journal.
func (k *Counters) openKept(ctx context.Context, c *cell, at time.Time, turn condition.Turn) error {
	of := seriesKey{strings.Clone(c.key.org), c.key.counter, c.key.revision}
	kept, err := k.keeper.open(ctx, of, c.counter, since(c, at), turn)
	if err != nil {
		return err
	}
	k.leases.Lock()
	defer k.leases.Unlock()
	k.seriesLocked(c, at).whole = &whole{windows: make(map[string]*window), kept: kept}
	return nil
}

// take keeps the window of c from a series that was read whole. names are the names of the agent in the history.
// take reports false if the series was not read whole, or if another agent has one of these names too. Then their
// windows overlap, and c's is read by itself.
func (k *Counters) take(ctx context.Context, c *cell, names []string, at time.Time) (bool, error) {
	of := make([]string, 0, 1)
	for _, name := range names {
		of = append(of, subject(c.counter, name, c.session))
	}
	if len(names) == 0 {
		of = append(of, subject(c.counter, c.agent, c.session))
	}
	k.leases.Lock()
	defer k.leases.Unlock()
	s := k.series[c.key.seriesKey]
	if s == nil || s.whole == nil || slices.ContainsFunc(of, func(of string) bool {
		_, has := s.named[of]
		return has || s.windows[of] != nil
	}) {
		return false, nil
	}
	w, from := new(window), s.whole
	if from.kept != nil {
		behind := from.behind
		if err := k.readKept(ctx, from, of, c.bucket, w); err != nil {
			return false, err
		}
		if k.series[c.key.seriesKey] != s || from.behind != behind {
			return true, nil // the caller finds no window, and takes it again
		}
		k.reads++
		from.read = k.reads
	}
	for _, of := range of {
		more := from.windows[of]
		if more == nil {
			continue
		}
		for _, p := range more.parts {
			w.add(p.At, p.N)
		}
		if from.kept == nil {
			delete(from.windows, of)
			k.kept--
		}
	}
	w.read = from.read
	k.keep(c, w, names, at)
	return true, nil
}

// readKept adds to w what the journal has for the subjects of. It releases the lock of k meanwhile.
func (k *Counters) readKept(ctx context.Context, from *whole, of []string, now int64, w *window) (err error) {
	behind := from.behind
	follow := from.caught != behind
	k.leases.Unlock()
	defer k.leases.Lock()
	if follow {
		if err := k.keeper.follow(ctx); err != nil {
			return err
		}
		k.leases.Lock()
		if from.open == 0 && from.behind == behind { // what settlements added is in the journal
			from.caught = behind
			k.kept -= len(from.windows)
			clear(from.windows)
		}
		k.leases.Unlock()
	}
	for _, of := range of {
		if err := k.keeper.read(from.kept, of, now, w); err != nil {
			return err
		}
	}
	return nil
}

// since returns the time before which no row counts in the window of c.
func since(c *cell, at time.Time) time.Time {
	return at.Add(-c.counter.Window - 2*c.counter.Bucket())
}

// eachRow calls f for the rows that the counter of c counts around a time, with their amounts, until f returns
// false. If names is not nil, it calls f for the rows of these agents alone.
func (k *Counters) eachRow(
	ctx context.Context, c *cell, names []string, at time.Time, turn condition.Turn,
	f func(row *storage.Record, amount int64) bool,
) error {
	filter := storage.Filter{
		Decision: engine.Allow,
		AgentIDs: names,
		From:     since(c, at),
		To:       at.Add(c.counter.Window), // another process's clock may be ahead
	}
	for page := (storage.Page{Limit: pageRows}); ; {
		rows, next, err := k.cfg.History.ListRecords(ctx, c.key.org, filter, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if amount, counted := counted(c.counter, row); counted && !f(row, amount) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		page.After = next
		if turn != nil {
			turn.Yield()
		}
	}
}
