package budget

import (
	"context"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// A process that decides alone reads all windows of a counter at once, because reading one of them
// takes as long: each is in the same rows. From then on the process counts every allowance itself, so a
// key without a window has counted nothing.

// everything is the part of a key that stands for all windows of a series. No window has it, because
// no id contains a line feed.
const everything = "\n\n"

// whole has the windows of a series that were read together and that no intent has asked for since. Their
// keys have the names of agents in the history.
type whole struct {
	read    uint64 // as in window
	windows map[string]*window
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
	s.whole = &whole{k.reads, all}
	k.kept += len(all)
	return nil
}

// takeLocked returns the window of c from a series that was read whole. names are the names of the agent in
// the history. takeLocked returns nil if another agent has one of these names too. Then their windows overlap,
// and c's is read by itself.
func (k *Counters) takeLocked(c *cell, names []string) *window {
	s := k.series[c.key.seriesKey]
	if s == nil || s.whole == nil {
		return nil
	}
	if len(names) == 0 {
		names = []string{c.agent}
	}
	for _, name := range names {
		of := subject(c.counter, name, c.session)
		if _, has := s.named[of]; has || s.windows[of] != nil {
			return nil
		}
	}
	w := &window{read: s.whole.read}
	for _, name := range names {
		of := subject(c.counter, name, c.session)
		if read := s.whole.windows[of]; read != nil {
			for _, p := range read.parts {
				w.add(p.At, p.N)
			}
			delete(s.whole.windows, of)
			k.kept--
		}
	}
	return w
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
		From:     at.Add(-c.counter.Window - 2*c.counter.Bucket()),
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
