package budget

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// settled returns by how much a settlement changes the amount that its decision added. It lowers
// the amount only if the settlement releases: see [storage.Settlement].
func settled(c *condition.Counter, s *storage.Settlement, amount int64) (change int64) {
	switch {
	case s == nil:
		return 0
	case s.Outcome != storage.Executed:
		change = -amount
	case c.Sum && s.AmountMinor != nil && s.Currency == c.Currency:
		change = *s.AmountMinor - amount
	}
	if change < 0 && !s.Releases {
		return 0
	}
	return change
}

// Settling is a settlement that is about to be stored.
type Settling struct {
	k       *Counters
	changes []*change
}

// change is the change that a settlement makes in a window, or an intent without one.
type change struct {
	key    key
	window storage.Window
	part   int64
	n      int64
	over   time.Time // when it has left the window
	in     *window   // the window of this process alone that has what the change adds; nil if none was in memory
	begun  string    // for a shared window, its begin as the store knows it; empty if the store kept none
}

// Settling prepares to count the settlement of a decision before the settlement is stored. at
// is the time at which it is stored. If the action has cost more than was allowed, Settling
// counts the difference at once, so that no error can leave the difference uncounted. counters
// are all counters of the organization. If Settling returns an error, the settlement must not
// be stored.
func (k *Counters) Settling(
	ctx context.Context, counters []*condition.Counter, org, decisionID string, s storage.Settlement, at time.Time,
) (*Settling, error) {
	p := &Settling{k: k}
	if len(counters) == 0 || s.Outcome == storage.Executed && s.AmountMinor == nil {
		return p, nil
	}
	row, err := k.cfg.History.Record(ctx, org, decisionID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return p, nil
	case err != nil:
		return nil, err
	case row.Decision != engine.Allow || row.Settlement != nil:
		return p, nil
	}
	for _, c := range counters {
		amount, ok := intentOf(row).Counted(c)
		ch := &change{n: settled(c, &s, amount), part: bucketAt(c, row.DecidedAt), over: at.Add(2 * c.Window)}
		if !ok || ch.n == 0 || k.cfg.Windows != nil && ch.part < bucketAt(c, at)-condition.Buckets-1 {
			continue
		}
		ch.key = keyOf(org, c, row.AgentID, row.SessionID)
		ch.window = k.windowOf(ch.key, c, row.AgentID, row.SessionID)
		if err := p.prepare(ctx, ch); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// prepare makes a change that adds something. For a shared window, it notes which window the
// store keeps.
func (p *Settling) prepare(ctx context.Context, ch *change) error {
	if p.k.cfg.Windows == nil {
		p.k.leases.Lock()
		p.k.prepareLocked(ch)
		p.k.leases.Unlock()
		p.changes = append(p.changes, ch)
		return nil
	}
	granted, err := p.k.cfg.Windows.Count(ctx, ch.window, ch.added())
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if ch.begun = granted.Begun; ch.n > 0 {
		ch.part = granted.At
	}
	p.changes = append(p.changes, ch)
	return nil
}

// added returns the request for the places that a change adds. It asks for none if the change
// adds nothing.
func (ch *change) added() storage.Ask {
	n := max(0, ch.n)
	return storage.Ask{At: ch.part, Limit: math.MaxInt64 / 2, Need: n, Want: n}
}

// prepareLocked adds what a change adds to a window that only this process counts in. If the window is read before
// the change ends, it may or may not have the change.
func (k *Counters) prepareLocked(ch *change) {
	k.settling[ch.key] = append(k.settling[ch.key], ch)
	if ch.in = k.window(ch.key); ch.in != nil {
		ch.in.add(ch.part, max(0, ch.n))
	}
}

// endLocked adds n in a window that only this process counts in. A window that was read since the change was prepared
// may have the change already, so it is not changed but read again.
func (k *Counters) endLocked(ch *change, n int64) {
	k.settling[ch.key] = slices.DeleteFunc(k.settling[ch.key], func(o *change) bool { return o == ch })
	if len(k.settling[ch.key]) == 0 {
		delete(k.settling, ch.key)
	}
	for of, r := range k.reading {
		if of.seriesKey == ch.key.seriesKey && of.of != everything {
			r.settled = append(r.settled, ch)
		}
	}
	switch w := k.window(ch.key); {
	case w == nil:
		if s := k.series[ch.key.seriesKey]; s != nil {
			s.behind++
		}
	case w != ch.in:
		w.stale = true
		w.changes++
	case n != 0:
		w.add(ch.part, n)
	}
}

// settle forgets changes that never ended, because it is not known whether they are stored.
func (k *Counters) settle(at time.Time) {
	if len(k.settling) < 1024 {
		return
	}
	maps.DeleteFunc(k.settling, func(_ key, all []*change) bool {
		return !slices.ContainsFunc(all, func(ch *change) bool { return at.Before(ch.over) })
	})
}

// End counts the settlement if it was stored first. Otherwise it takes back what Settling has
// counted. It must not be called if it is unknown whether the settlement is stored. Then, and if the
// store fails, the counted amount stays until it leaves the window.
func (p *Settling) End(ctx context.Context, first bool) {
	for i := range p.changes {
		p.end(ctx, p.changes[i], first)
	}
}

// end counts a change. If a shared window was begun in the meantime, it may have read the
// settlement from the history. So end makes an addition to such a window, but no subtraction.
func (p *Settling) end(ctx context.Context, ch *change, first bool) {
	subtracts, n := first == (ch.n < 0), max(ch.n, -ch.n)
	var ask storage.Ask
	switch {
	case p.k.cfg.Windows == nil:
		if !subtracts {
			n = 0
		}
		p.k.leases.Lock()
		p.k.endLocked(ch, -n)
		p.k.leases.Unlock()
		return
	case subtracts && ch.begun != "":
		ask = storage.Ask{At: ch.part, Begun: ch.begun, Back: []storage.WindowPart{{At: ch.part, N: n}}}
	case first && ch.n > 0 && ch.begun == "":
		ask = ch.added()
	default:
		return
	}
	p.k.cfg.Windows.Count(ctx, ch.window, ask) //nolint:errcheck // see End
	p.k.leases.Lock()
	defer p.k.leases.Unlock()
	if w := p.k.window(ch.key); w != nil && w.shared != nil {
		w.shared.Doubt()
	}
}
