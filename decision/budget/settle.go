package budget

import (
	"context"
	"errors"
	"math"
	"strings"
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
	changes []change
}

// change is the change that a settlement makes in a window.
type change struct {
	key    key
	window storage.Window
	part   int64
	n      int64
	read   uint64 // the value of Counters.reads when it was prepared
	open   bool   // whether it is one of whole.open
	begun  string // for a shared window, its begin as the store knows it; empty if the store kept none
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
		ch := change{n: settled(c, &s, amount), part: bucketAt(c, row.DecidedAt)}
		if !ok || ch.n == 0 || ch.part < bucketAt(c, at)-condition.Buckets-1 {
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
func (p *Settling) prepare(ctx context.Context, ch change) error {
	if p.k.cfg.Windows == nil {
		p.prepareAlone(&ch)
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

// prepareAlone adds what a change adds to a window that only this process counts in. No window contains the settlement
// yet, because it is not stored.
func (p *Settling) prepareAlone(ch *change) {
	p.k.leases.Lock()
	defer p.k.leases.Unlock()
	ch.read = p.k.reads
	w := p.k.window(ch.key)
	s := p.k.series[ch.key.seriesKey]
	if w == nil && s != nil && s.whole != nil {
		w = s.whole.windows[ch.key.of]
		if ch.open = s.whole.kept != nil; ch.open {
			s.whole.open++
		}
		if ch.open && w == nil {
			w = new(window)
			s.whole.windows[strings.Clone(ch.key.of)] = w
			p.k.kept++
		}
	}
	if w != nil {
		w.add(ch.part, max(0, ch.n))
	}
}

// add counts n in a window that only this process counts in. It does not change a window that
// was read in the meantime, because that window may contain the settlement already. The window may
// then be too high until it is read again.
func (p *Settling) add(ch *change, n int64) {
	p.k.leases.Lock()
	defer p.k.leases.Unlock()
	w := p.k.window(ch.key)
	if s := p.k.series[ch.key.seriesKey]; w == nil && s != nil && s.whole != nil {
		w = s.whole.windows[ch.key.of]
	}
	if w != nil && w.read <= ch.read {
		w.add(ch.part, n)
	}
}

// close ends a change in a window that was not in memory. The journal has what became of it.
func (p *Settling) close(ch *change) {
	p.k.leases.Lock()
	defer p.k.leases.Unlock()
	if s := p.k.series[ch.key.seriesKey]; s != nil && s.whole != nil {
		s.whole.open--
		s.whole.behind++
	}
}

// End counts the settlement if it was stored first. Otherwise it takes back what Settling has
// counted. It must not be called if it is unknown whether the settlement is stored. If the
// store fails, the counted amount stays until it leaves the window.
func (p *Settling) End(ctx context.Context, first bool) {
	for i := range p.changes {
		p.end(ctx, &p.changes[i], first)
	}
}

// end counts a change. If a shared window was begun in the meantime, it may have read the
// settlement from the history. So end makes an addition to such a window, but no subtraction.
func (p *Settling) end(ctx context.Context, ch *change, first bool) {
	subtracts, n := first == (ch.n < 0), max(ch.n, -ch.n)
	var ask storage.Ask
	switch {
	case ch.open:
		p.close(ch)
		return
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
