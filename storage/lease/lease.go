// Package lease keeps the places that a store has granted this process in its windows: the
// meters of months, and what rules count where several processes decide. See
// [storage.Quotas].
//
// An intent takes its places within a limit, which may be another one each time:
//
//	claim, ok, err := pool.Take(ctx, turn, lease, at, part, limit, n)
//
// It gets places that the store has granted within that limit or a lower one. So what all
// processes take comes to no more than each was told, though what they know of each other is
// old. Otherwise the store is asked, by one request for all who wait: for what an intent
// needs, and for twice as much each time. That a limit is reached is believed for a quarter
// of a second.
//
// Places that are not used are given back with [Pool.GiveBack] and, once they are idle for
// a second or two, to the store by [Pool.Run]. What the store does not take back, or an
// answer that is lost, stays taken: in a meter until the store gives this process up, in
// another window until it has left it.
package lease

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"writ/engine/condition"
	"writ/storage"
)

const (
	// answerFor is how long the store's answer that a limit is reached is believed, by the
	// clock that intents are decided by: who is at a limit costs few requests.
	answerFor = 250 * time.Millisecond
	// idleAfter is how often places are given back that were not used since the last time.
	idleAfter = time.Second
	// portion is how many times what an intent needs a process asks for, at most, unless
	// it asks for more at first.
	portion = 256
)

// NoLimit is a limit that nothing reaches.
const NoLimit = math.MaxInt64 / 2

// Store grants places.
type Store interface {
	Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error)
}

// Pool are the leases of a process. Its lock guards them, and what their owner keeps beside
// them. Methods of leases are called, and those of a pool that say so, while it is held.
type Pool struct {
	sync.Mutex
	// Lost, if it is not nil, hears why idle places could not be given back.
	Lost func(error)
	// Asked counts how often the store was asked for places, and Failed what it could not
	// answer.
	Asked, Failed atomic.Int64

	store Store
	lent  map[*Lease]struct{} // with places to give back, or a question under way
}

// NewPool returns a pool of what a store grants.
func NewPool(store Store) *Pool { return &Pool{store: store, lent: make(map[*Lease]struct{})} }

// Lease is what this process has of a window.
type Lease struct {
	window storage.Window
	least  int64 // how many places to ask for at least
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

// Claim are places that were taken. The zero Claim is of none.
type Claim struct {
	part   int64
	answer uint32
}

// New returns a lease of a window, of which at least so many places are asked for at once.
func New(w storage.Window, least int64) *Lease { return &Lease{window: w, least: least} }

// Learn says what the window had come to at a time.
func (l *Lease) Learn(total int64, at time.Time) { l.total, l.at = total, at }

// Doubt says that what is known of the window is old.
func (l *Lease) Doubt() { l.at = time.Time{} }

// Total is what the window had come to when the store last answered, with what was taken
// here since.
func (l *Lease) Total() int64 { return l.total - l.free }

// IsIdle reports whether nothing is to be given back, and nothing is asked.
func (l *Lease) IsIdle() bool { return l.isEmptyHanded() && l.asking == nil }

func (l *Lease) isEmptyHanded() bool { return l.free == 0 && len(l.back) == 0 }

// IsKnown reports whether Total is known well enough at a time.
func (l *Lease) IsKnown(at time.Time) bool { return l.asking == nil && l.isBelieved(at) }

func (l *Lease) isBelieved(at time.Time) bool {
	age := at.Sub(l.at)
	return len(l.back) == 0 && age < answerFor && age > -answerFor
}

// Refresh asks what a window has come to by a part. The lock is held when it is called and
// when it returns, not while it waits, and so it is with Take. turn is paused meanwhile; it
// may be nil.
func (p *Pool) Refresh(ctx context.Context, turn condition.Turn, l *Lease, at time.Time, part int64) error {
	if l.asking == nil {
		p.ask(ctx, l, at, storage.Ask{At: part})
	}
	return p.await(ctx, turn, l)
}

// Take takes n places of a window for an intent that is decided at a time, in a part,
// unless the window comes to more than limit with them.
func (p *Pool) Take(
	ctx context.Context, turn condition.Turn, l *Lease, at time.Time, part, limit, n int64,
) (Claim, bool, error) {
	for {
		if l.asking == nil {
			switch known := l.isBelieved(at); {
			case known && limit-l.Total() < n:
				return Claim{}, false, nil
			case n == 0 && known, n > 0 && l.serves(part, limit, n):
				l.free -= n
				l.used = true
				return Claim{l.part, l.answers}, true, nil
			}
			p.ask(ctx, l, at, l.question(at, part, limit, n))
		}
		if err := p.await(ctx, turn, l); err != nil {
			return Claim{}, false, err
		}
	}
}

// serves reports whether n places are here, within a limit. They are those of the part
// that the intent is decided in or, for one that was begun before, of the next.
func (l *Lease) serves(part, limit, n int64) bool {
	return l.free >= n && l.limit <= limit && (l.asked == part || l.asked == part+1)
}

// question asks for n places and more: for twice as many as the time before, unless that
// was long ago, so that a busy process asks seldom, and a quiet one holds little.
func (l *Lease) question(at time.Time, part, limit, n int64) storage.Ask {
	if n == 0 {
		return storage.Ask{At: part}
	}
	if l.asked != part || at.Sub(l.at) > idleAfter {
		l.want /= 4
	}
	l.want = min(max(n, l.least, l.want), max(l.least, portion*n))
	ask := storage.Ask{At: part, Limit: limit, Need: n, Want: l.want}
	l.want *= 2
	return ask
}

// GiveBack ends a claim of n places that are not used. The lock is held.
func (p *Pool) GiveBack(l *Lease, c Claim, n int64) {
	last := len(l.back) - 1
	switch {
	case n == 0:
		return
	case l.answers == c.answer && l.asking == nil:
		l.free += n
	case last >= 0 && l.back[last].At == c.part:
		l.back[last].N += n
	default:
		l.back = append(l.back, storage.WindowPart{At: c.part, N: n})
	}
	p.lent[l] = struct{}{}
}

// ask has the store take back what is free and answer what is asked. It does not end with
// its caller: the answer would be lost, and its places with it. Nothing is being asked of l.
func (p *Pool) ask(ctx context.Context, l *Lease, at time.Time, ask storage.Ask) {
	a := &asking{done: make(chan struct{})}
	l.asking = a
	ask.Back = l.back
	if l.free > 0 {
		ask.Back = append(ask.Back, storage.WindowPart{At: l.part, N: l.free})
	}
	l.total, l.free, l.back = l.total-l.free, 0, nil
	p.lent[l] = struct{}{}
	go func() {
		granted, err := p.store.Count(context.WithoutCancel(ctx), l.window, ask)
		if ask.Want > 0 {
			p.Asked.Add(1)
		}
		p.Lock()
		defer p.Unlock()
		l.answers++
		if err != nil {
			p.Failed.Add(1)
			l.Doubt()
		} else {
			l.Learn(granted.Total, at)
			l.free, l.part, l.limit, l.asked = granted.N, granted.At, ask.Limit, ask.At
		}
		if l.isEmptyHanded() {
			delete(p.lent, l)
		}
		a.err = err
		close(a.done)
		l.asking = nil
	}()
}

// await waits for what is asked of a window, or until ctx ends.
func (p *Pool) await(ctx context.Context, turn condition.Turn, l *Lease) error {
	a := l.asking
	p.Unlock()
	defer p.Lock()
	if err := Await(ctx, turn, a.done); err != nil {
		return err
	}
	return a.err
}

// Await waits until done is closed or ctx ends. turn is paused meanwhile; it may be nil.
func Await(ctx context.Context, turn condition.Turn, done <-chan struct{}) error {
	defer condition.Paused(turn)()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run gives back to the store what is idle until ctx ends, and then everything. Each time
// it calls idle, with the lock held.
func (p *Pool) Run(ctx context.Context, idle func()) {
	tick := time.NewTicker(idleAfter)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.Return(ctx, false)
			p.Lock()
			idle()
			p.Unlock()
		case <-ctx.Done():
			p.Stop(ctx)
			return
		}
	}
}

// Stop gives everything back and waits for the store's answers, for at most five seconds.
func (p *Pool) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*idleAfter)
	defer cancel()
	p.Return(ctx, true)
	p.Return(ctx, true) // places granted meanwhile
	if err := ctx.Err(); err != nil && p.Lost != nil {
		p.Lost(err)
	}
}

// Return gives back the places that were not used since the last call, or all, until ctx
// ends. If all, it also waits for the questions under way.
func (p *Pool) Return(ctx context.Context, all bool) {
	p.Lock()
	defer p.Unlock()
	idle := make([]*Lease, 0, len(p.lent))
	for l := range p.lent {
		if all || l.asking == nil && (!l.used || len(l.back) > 0) {
			idle = append(idle, l)
		}
		l.used = false
	}
	for _, l := range idle {
		if l.asking == nil {
			l.want = 0
			p.ask(ctx, l, l.at, storage.Ask{At: l.asked})
		}
		err := p.await(ctx, nil, l)
		if ctx.Err() != nil {
			return
		}
		if err != nil && p.Lost != nil {
			p.Lost(err)
		}
	}
}
