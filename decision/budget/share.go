package budget

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"writ/engine/condition"
	"writ/storage"
)

const (
	// answerFor is how long the store's answer that a limit is reached is believed, by the
	// clock that intents are decided by: an agent at its limit costs few requests.
	answerFor = 250 * time.Millisecond
	// idleAfter is how often places are given back that were not used since the last time.
	idleAfter = time.Second
	// portion is how many times what an intent needs a process asks for, at most.
	portion = 256
)

// share is what this process has of a window that several count in: places that the store
// has granted. [Counters].mu guards it.
type share struct {
	window storage.Window
	// total is what the window had come to over all processes, with free, when the store
	// last answered, which was at a time; the zero time if that is not to be believed.
	total int64
	at    time.Time
	// free places count in part, lie within limit, and may be used in the part asked.
	free, part, limit, asked int64
	// answers numbers the store's answers: places of another one are not free again.
	answers uint32
	want    int64                // how many places to ask for
	back    []storage.WindowPart // to be given back
	used    bool                 // since places were last looked for that are not
	asking  *asking              // nil: nothing is asked
}

// asking is what the store is asked of a window, for all who wait for the answer. done is
// closed when it is there.
type asking struct {
	done chan struct{}
	err  error // set before
}

func (s *share) isEmptyHanded() bool { return s.free == 0 && len(s.back) == 0 }

func (s *share) isIdle() bool { return s.isEmptyHanded() && s.asking == nil }

// isKnown reports whether what the window has come to is known well enough at a time.
func (s *share) isKnown(at time.Time) bool {
	age := at.Sub(s.at)
	return len(s.back) == 0 && age < answerFor && age > -answerFor
}

func windowOf(k key, c *condition.Counter) storage.Window {
	return storage.Window{
		Org: k.org, Counter: strconv.FormatInt(k.revision, 10) + " " + k.counter, Of: k.of,
		Part: c.Bucket(), Parts: condition.Buckets,
	}
}

// askLocked has the store take back what is free and answer what is asked. It does not
// end with its caller: the answer would be lost, and its places with it. s is not being
// asked about.
func (k *Counters) askLocked(ctx context.Context, s *share, at time.Time, ask storage.Ask) {
	a := &asking{done: make(chan struct{})}
	s.asking = a
	ask.Back = s.back
	if s.free > 0 {
		ask.Back = append(ask.Back, storage.WindowPart{At: s.part, N: s.free})
	}
	s.total, s.free, s.back = s.total-s.free, 0, nil
	k.asks.Go(func() {
		granted, err := k.cfg.Windows.Count(context.WithoutCancel(ctx), s.window, ask)
		k.mu.Lock()
		defer k.mu.Unlock()
		s.answers++
		if err != nil {
			s.at = time.Time{}
		} else {
			s.total, s.at = granted.Total, at
			s.free, s.part, s.limit, s.asked = granted.N, granted.At, ask.Limit, ask.At
		}
		delete(k.lent, s)
		if !s.isEmptyHanded() {
			k.lent[s] = struct{}{}
		}
		a.err = err
		close(a.done)
		s.asking = nil
	})
}

// awaitLocked waits for what is asked of a window, or until ctx ends. mu is not held
// meanwhile. A window that the store does not keep is forgotten.
func (k *Counters) awaitLocked(ctx context.Context, of key, w *window, turn condition.Turn) error {
	a := w.shared.asking
	k.mu.Unlock()
	err := await(ctx, turn, a.done)
	if err == nil {
		err = a.err
	}
	k.mu.Lock()
	if errors.Is(err, storage.ErrNotFound) {
		if k.window(of) == w {
			delete(k.series[of.seriesKey].windows, of.of)
			k.kept--
		}
		return nil
	}
	return err
}

// begin returns the window of a cell that several processes count in. It has the store
// keep it, as the history has it, if it does not yet.
func (k *Counters) begin(ctx context.Context, c *cell, at time.Time, turn condition.Turn) (*window, error) {
	s := &share{window: windowOf(c.key, c.counter), at: at}
	resume := condition.Paused(turn)
	granted, err := k.cfg.Windows.Count(ctx, s.window, storage.Ask{At: c.bucket})
	resume()
	if errors.Is(err, storage.ErrNotFound) {
		var w *window
		if w, err = k.read(ctx, c, at, turn); err == nil {
			defer condition.Paused(turn)()
			err = k.cfg.Windows.Begin(ctx, s.window, w.parts)
		}
		if err == nil {
			granted, err = k.cfg.Windows.Count(ctx, s.window, storage.Ask{At: c.bucket})
		}
	}
	s.total = granted.Total
	return &window{shared: s}, err
}

// refreshLocked asks what a shared window has come to where that decides and is not known.
// It reports whether it was known; otherwise look for the window again. mu is not held while
// it waits.
func (k *Counters) refreshLocked(ctx context.Context, w *window, c *cell, at time.Time, turn condition.Turn) (known bool, err error) {
	s := w.shared
	if s == nil || w.total()+c.amount <= c.counter.UpTo(0) || s.asking == nil && s.isKnown(at) {
		return true, nil
	}
	if s.asking == nil {
		k.askLocked(ctx, s, at, storage.Ask{At: c.bucket})
	}
	return false, k.awaitLocked(ctx, c.key, w, turn)
}

// claim takes the places for the cells of windows that several processes count in, as long
// as these come to no more than what the intent was evaluated with is taken for. Otherwise
// it takes none.
func (r *Reading) claim(ctx context.Context) (ok bool, err error) {
	for i := range r.cells {
		if c := &r.cells[i]; c.window.shared != nil && !r.hold.holds(c) {
			if ok, err = r.counters.claim(ctx, c, r.at, r.turn); !ok {
				r.unclaim(i)
				return false, err
			}
		}
	}
	return true, nil
}

// unclaim gives back what claim took for the first n cells.
func (r *Reading) unclaim(n int) {
	k := r.counters
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range r.cells[:n] {
		if c := &r.cells[i]; c.window.shared != nil && !r.hold.holds(c) {
			k.unclaimLocked(c)
		}
	}
}

// claim takes the places that a cell needs.
func (k *Counters) claim(ctx context.Context, c *cell, at time.Time, turn condition.Turn) (ok bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	limit := c.counter.UpTo(condition.Saturated(c.before, c.amount))
	if limit == condition.MaxInteger {
		limit = math.MaxInt64 / 2 // there is none
	}
	for s := c.window.shared; k.window(c.key) == c.window; {
		if s.asking == nil {
			switch left := limit - (s.total - s.free); {
			case s.isKnown(at) && left < c.amount:
				return false, nil
			case c.amount == 0 && s.isKnown(at), c.amount > 0 && s.serves(c, limit):
				k.claimLocked(c)
				return true, nil
			}
			k.askLocked(ctx, s, at, s.question(c, at, limit))
		}
		if err := k.awaitLocked(ctx, c.key, c.window, turn); err != nil {
			return false, err
		}
	}
	return false, nil
}

// serves reports whether the places for a cell are here, within a limit. They are those of
// the part that the intent is decided in or, for one that was begun before, of the next.
func (s *share) serves(c *cell, limit int64) bool {
	return s.free >= c.amount && s.limit <= limit && (s.asked == c.bucket || s.asked == c.bucket+1)
}

func (k *Counters) claimLocked(c *cell) {
	s := c.window.shared
	s.free -= c.amount
	s.used = true
	c.window.held++
	c.part, c.answer = s.part, s.answers
}

// question asks for the places of a cell: for twice as many as the time before, unless
// that was long ago, so that a busy process asks seldom, and a quiet one holds little.
func (s *share) question(c *cell, at time.Time, limit int64) storage.Ask {
	if c.amount == 0 {
		return storage.Ask{At: c.bucket}
	}
	if s.asked != c.bucket || at.Sub(s.at) > idleAfter {
		s.want /= 4
	}
	s.want = min(max(c.amount, s.want), portion*c.amount)
	ask := storage.Ask{At: c.bucket, Limit: limit, Need: c.amount, Want: s.want}
	s.want *= 2
	return ask
}

// unclaimLocked ends the claim of a cell whose places are not used.
func (k *Counters) unclaimLocked(c *cell) {
	s := c.window.shared
	c.window.held--
	switch {
	case c.amount == 0:
		return
	case s.answers == c.answer && s.asking == nil:
		s.free += c.amount
	default:
		s.back = append(s.back, storage.WindowPart{At: c.part, N: c.amount})
	}
	k.lent[s] = struct{}{}
}

// Run gives back to the store what is idle until ctx ends, and then everything.
func (k *Counters) Run(ctx context.Context) {
	if k.cfg.Windows == nil {
		return
	}
	tick := time.NewTicker(idleAfter)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.giveUp(ctx, false)
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*idleAfter)
			defer cancel()
			k.giveUp(ctx, true)
			k.asks.Wait()
			return
		}
	}
}

// giveUp gives back the places that nobody has used since the time before, or all. What the
// store does not take stays taken until it leaves its window.
func (k *Counters) giveUp(ctx context.Context, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	idle := make([]*share, 0, len(k.lent))
	for s := range k.lent {
		if all || !s.used || len(s.back) > 0 {
			idle = append(idle, s)
		}
		s.used = false
	}
	for _, s := range idle {
		if s.asking == nil && ctx.Err() == nil {
			s.want = 0
			k.askLocked(ctx, s, s.at, storage.Ask{At: s.asked})
			a := s.asking
			k.mu.Unlock()
			<-a.done
			k.mu.Lock()
		}
	}
}
