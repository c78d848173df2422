// Package lease keeps the places that a store has granted this process in its windows: the
// meters of months and, if several processes decide, the windows of rules. See [storage.Quotas].
//
// An intent takes its places within a limit, which may differ each time:
//
//	claim, ok, err := pool.Take(ctx, turn, lease, at, part, limit, n)
//
// It gets places that the store has granted within that limit or a lower one. So all processes
// together stay within the limit, although they know each other's counts only with a delay.
// Without such places the store is asked, by one request for all waiting intents: for the places
// that an intent needs, and for twice as many each time. The answer that a limit is reached is
// trusted for a quarter of a second.
//
// Unused places are given back with [Pool.GiveBack]. [Pool.Run] gives them back to the store once
// they are idle for a second or two. The places of a failed or lost request stay taken: in a meter
// until the store gives this process up, in another window until they have left it.
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
	// answerFor is how long the store's answer that a limit is reached is trusted, by the clock
	// of decisions. An organization at its limit therefore costs few requests.
	answerFor = 250 * time.Millisecond
	// idleAfter is how often unused places are given back.
	idleAfter = time.Second
	// portion bounds a request to so many times the need of an intent, unless the least request
	// of the lease is larger.
	portion = 256
)

// NoLimit is an unreachable limit.
const NoLimit = math.MaxInt64 / 2

// Store grants places.
type Store interface {
	Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error)
}

// Pool are the leases of a process. Its lock guards them and their owner's own data about them.
// Callers hold the lock when they call a method of a lease, or of the pool if its comment says so.
type Pool struct {
	sync.Mutex
	// Lost, if it is not nil, is called with the error if places could not be given back.
	Lost func(error)
	// Asked counts the requests for places, and Failed all requests that failed.
	Asked, Failed atomic.Int64

	store Store
	lent  map[*Lease]struct{} // those with places to give back, or a request under way
}

// NewPool returns an empty pool of places of a store.
func NewPool(store Store) *Pool { return &Pool{store: store, lent: make(map[*Lease]struct{})} }

// Lease are the places of this process in a window.
type Lease struct {
	window storage.Window
	least  int64 // the smallest request
	// total is the total of the window over all processes, including free, in the store's
	// last answer. at is the time of that answer, zero if total is out of date.
	total int64
	at    time.Time
	// free places count in part, lie within limit, and may be used in the part asked.
	free, part, limit, asked int64
	// answers numbers the store's answers. A claim of an earlier answer does not become free
	// again.
	answers uint32
	want    int64                // the size of the next request
	back    []storage.WindowPart // to be given back
	used    bool                 // since the last Return
	request *request             // under way, or nil
}

// request is a request to the store, for all intents that wait for its answer.
type request struct {
	done chan struct{} // closed after the answer
	err  error         // set before
}

// Claim are taken places. The zero Claim has none.
type Claim struct {
	part   int64
	answer uint32
}

// New returns a lease of a window. Its requests are for at least least places.
func New(w storage.Window, least int64) *Lease { return &Lease{window: w, least: least} }

// Learn sets the total of the window at a time.
func (l *Lease) Learn(total int64, at time.Time) { l.total, l.at = total, at }

// Doubt makes the known total out of date.
func (l *Lease) Doubt() { l.at = time.Time{} }

// Total is the total of the window in the store's last answer, plus the places taken here since.
func (l *Lease) Total() int64 { return l.total - l.free }

// IsIdle reports whether l has no places to give back and no request under way.
func (l *Lease) IsIdle() bool { return l.isEmptyHanded() && l.request == nil }

func (l *Lease) isEmptyHanded() bool { return l.free == 0 && len(l.back) == 0 }

// IsKnown reports whether Total is recent enough at a time.
func (l *Lease) IsKnown(at time.Time) bool { return l.request == nil && l.isBelieved(at) }

func (l *Lease) isBelieved(at time.Time) bool {
	age := at.Sub(l.at)
	return len(l.back) == 0 && age < answerFor && age > -answerFor
}

// Refresh asks for the total of a window in a part. Callers of Refresh and Take hold the lock,
// which is released during the wait. turn is paused meanwhile; it may be nil.
func (p *Pool) Refresh(ctx context.Context, turn condition.Turn, l *Lease, at time.Time, part int64) error {
	if l.request == nil {
		p.ask(ctx, l, at, storage.Ask{At: part})
	}
	return p.await(ctx, turn, l)
}

// Take takes n places of a window for an intent that is decided at a time, in a part, unless they
// would raise the window's total above limit.
func (p *Pool) Take(
	ctx context.Context, turn condition.Turn, l *Lease, at time.Time, part, limit, n int64,
) (Claim, bool, error) {
	for {
		if l.request == nil {
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

// serves reports whether n places are free within a limit. They must be of the intent's part, or
// of the next part if the intent began earlier.
func (l *Lease) serves(part, limit, n int64) bool {
	return l.free >= n && l.limit <= limit && (l.asked == part || l.asked == part+1)
}

// question asks for n places and more: for twice as many as the last time, unless that was long
// ago. A busy process therefore asks seldom, and a quiet one holds few places.
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

// GiveBack ends a claim of n unused places. Callers hold the lock.
func (p *Pool) GiveBack(l *Lease, c Claim, n int64) {
	last := len(l.back) - 1
	switch {
	case n == 0:
		return
	case l.answers == c.answer && l.request == nil:
		l.free += n
	case last >= 0 && l.back[last].At == c.part:
		l.back[last].N += n
	default:
		l.back = append(l.back, storage.WindowPart{At: c.part, N: n})
	}
	p.lent[l] = struct{}{}
}

// ask begins a request, which also gives back the free places. It does not end with ctx: the
// answer would be lost with its places. l must have no request under way.
func (p *Pool) ask(ctx context.Context, l *Lease, at time.Time, ask storage.Ask) {
	r := &request{done: make(chan struct{})}
	l.request = r
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
		r.err = err
		close(r.done)
		l.request = nil
	}()
}

// await waits for the answer to l's request, or until ctx ends.
func (p *Pool) await(ctx context.Context, turn condition.Turn, l *Lease) error {
	r := l.request
	p.Unlock()
	defer p.Lock()
	if err := Await(ctx, turn, r.done); err != nil {
		return err
	}
	return r.err
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

// Run gives idle places back to the store until ctx ends, and then all places. Each time it calls
// idle, with the lock held.
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

// Return gives back the places that were not used since the last call, or all, until ctx ends. If
// all, it also waits for requests under way.
func (p *Pool) Return(ctx context.Context, all bool) {
	p.Lock()
	defer p.Unlock()
	idle := make([]*Lease, 0, len(p.lent))
	for l := range p.lent {
		if all || l.request == nil && (!l.used || len(l.back) > 0) {
			idle = append(idle, l)
		}
		l.used = false
	}
	for _, l := range idle {
		if l.request == nil {
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
