package budget

import (
	"context"
	"errors"
	"math"
	"time"

	"writ/engine"
	"writ/engine/condition"
	"writ/storage"
)

// settled returns by how much a settlement changes the amount that its action adds.
func settled(c *condition.Counter, s *storage.Settlement, amount int64) int64 {
	switch {
	case s == nil:
		return 0
	case s.Outcome != storage.Executed:
		return -amount
	case c.Sum && s.AmountMinor != nil && s.Currency == c.Currency:
		return *s.AmountMinor - amount
	}
	return 0
}

// Settling is a settlement that is about to be stored.
type Settling struct {
	k       *Counters
	read    uint64 // what Counters.reads was
	changes []change
}

// change is what a settlement changes in a window.
type change struct {
	key    key
	window storage.Window
	part   int64
	n      int64
	begun  string // of a shared window: which it was, empty if the store kept none
}

// Settling prepares to count the settlement of a decision, before it is stored at a time.
// If the action has cost more than was allowed, the difference is counted now, so that no
// error leaves it uncounted. counters are all counters of the organization. After an error
// the settlement must not be stored.
func (k *Counters) Settling(
	ctx context.Context, counters []*condition.Counter, org, decisionID string, s storage.Settlement, at time.Time,
) (*Settling, error) {
	k.leases.Lock()
	p := &Settling{k: k, read: k.reads}
	k.leases.Unlock()
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
		ch := change{n: settled(c, &s, amount), part: bucketAt(c, row.DecidedAt)}
		if !ok || ch.n == 0 || ch.part < bucketAt(c, at)-condition.Buckets-1 {
			continue
		}
		ch.key = keyOf(org, c, row.AgentID, row.SessionID)
		ch.window = windowOf(ch.key, c)
		if err := p.prepare(ctx, ch); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// prepare makes a change that adds, and notes which shared window it is of.
func (p *Settling) prepare(ctx context.Context, ch change) error {
	if p.k.cfg.Windows == nil {
		p.add(&ch, max(0, ch.n))
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

// added asks for the places that a change adds, if it adds any.
func (ch *change) added() storage.Ask {
	n := max(0, ch.n)
	return storage.Ask{At: ch.part, Limit: math.MaxInt64 / 2, Need: n, Want: n}
}

// add counts n in a window of this process alone. A window that was read meanwhile may
// have the settlement already, and is left as it is. So is the window of an agent whose
// name the history does not show. Both may be too high until they are read again.
func (p *Settling) add(ch *change, n int64) {
	p.k.leases.Lock()
	defer p.k.leases.Unlock()
	if w := p.k.window(ch.key); w != nil && w.read <= p.read {
		w.add(ch.part, n)
	}
}

// End counts the settlement if it was stored first, and otherwise takes back what Settling
// counted. It must not be called if nobody knows whether it is stored. If the store fails,
// what Settling counted stays until it leaves the window.
func (p *Settling) End(ctx context.Context, first bool) {
	for i := range p.changes {
		p.end(ctx, &p.changes[i], first)
	}
}

// end counts a change. A shared window that was begun meanwhile may have read the
// settlement from the history. So an addition is made to it, a subtraction is not.
func (p *Settling) end(ctx context.Context, ch *change, first bool) {
	subtracts, n := first == (ch.n < 0), max(ch.n, -ch.n)
	var ask storage.Ask
	switch {
	case p.k.cfg.Windows == nil:
		if subtracts {
			p.add(ch, -n)
		}
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
