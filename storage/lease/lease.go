// Package lease keeps the places that a store has granted to this process, see
// [storage.Quotas]. A place belongs to a window. The meter of a month is a window. If several
// processes decide, the counters of rules have windows in the store, too.
//
// An intent takes places within a limit, and each call may have another limit:
//
//	claim, ok, err := pool.Take(ctx, turn, lease, at, part, limit, n)
//
// The intent gets places that the store has granted within this limit or a lower limit. So all
// processes together stay within the limit, although they know each other's counts only with a
// delay. If the process has no such places, it sends the store one request for all waiting
// intents. The first request is for the places that an intent needs, and each later request is
// for twice as many. If the store answers that a limit is reached, this answer is trusted for a
// quarter of a second.
//
// Unused places are given back with [Pool.GiveBack]. [Pool.Run] gives places back to the store
// after they were idle for one or two seconds. The places of a failed or lost request stay
// taken. In a meter they stay taken until the store gives this process up. In another window
// they stay taken until they have left the window.
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
	// answerFor is how long a total from the store is trusted, by the clock of decisions. It keeps
	// the requests few for an organization at its limit.
	answerFor = 250 * time.Millisecond
	// idleAfter is the time between two looks for unused places to give back.
	idleAfter = time.Second
	// portion bounds the size of a request. A request is for at most portion times the places
	// that the intent needs, or for the least request of the lease if that is larger.
	portion = 256
)

// NoLimit is a limit that no window reaches.
const NoLimit = math.MaxInt64 / 2

// Store grants places.
type Store interface {
	Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error)
}

// Pool has the leases of a process. Its lock guards the leases. The owner of a lease can guard
// its own data about the lease with the same lock. Callers must hold the lock when they call a
// method of a lease, or a method of the pool whose comment says so.
type Pool struct {
	sync.Mutex
	// Lost, if it is not nil, is called when places could not be given back, with the error.
	Lost func(error)
	// Asked counts the requests for places, and Failed all requests that failed.
	Asked, Failed atomic.Int64

	store Store
	lent  map[*Lease]struct{} // leases with places to give back or with a request under way
}

// NewPool returns an empty pool of places of a store.
func NewPool(store Store) *Pool { return &Pool{store: store, lent: make(map[*Lease]struct{})} }

// Lease has the places of this process in a window.
type Lease struct {
	window storage.Window
	least  int64 // the smallest request
	// total is the total of the window in the store's last answer, over all processes. It includes
	// free. at is the time of that answer, or zero if total is out of date.
	total int64
	at    time.Time
	// free is the number of free places. The places count in part, were granted within limit, and
	// may be used in the part asked.
	free, part, limit, asked int64
	// answers counts the store's answers. If a claim is from an earlier answer, its places do
	// not become free again.
	answers uint32
	want    int64                // the size of the next request
	back    []storage.WindowPart // places to give back to the store
	used    bool                 // whether places were taken since the last Return
	request *request             // the request under way, or nil
}

// request is a request to the store. All intents of the lease wait for its answer.
type request struct {
	done chan struct{} // closed after the answer
	err  error         // set before done is closed
}

// Claim says from which answer of the store, and in which part, places were taken. The zero
// Claim has no places.
type Claim struct {
	part   int64
	answer uint32
}

// New returns a lease of a window. Each request of the lease is for at least least places.
func New(w storage.Window, least int64) *Lease { return &Lease{window: w, least: least} }

// Learn sets the total of the window at a time.
func (l *Lease) Learn(total int64, at time.Time) { l.total, l.at = total, at }

// Doubt makes the known total out of date.
func (l *Lease) Doubt() { l.at = time.Time{} }

// Total returns the total of the window in the store's last answer, plus the granted places
// that were taken here since then.
func (l *Lease) Total() int64 { return l.total - l.free }

// IsIdle reports whether l has no places to give back and no request under way.
func (l *Lease) IsIdle() bool { return l.isEmptyHanded() && l.request == nil }

func (l *Lease) isEmptyHanded() bool { return l.free == 0 && len(l.back) == 0 }

// IsKnown reports whether Total is recent enough to be trusted at a time.
func (l *Lease) IsKnown(at time.Time) bool { return l.request == nil && l.isBelieved(at) }

func (l *Lease) isBelieved(at time.Time) bool {
	age := at.Sub(l.at)
	return len(l.back) == 0 && age < answerFor && age > -answerFor
}

// Refresh asks the store for the total of a window in a part. Callers of Refresh and Take must
// hold the lock. Both methods release it while they wait. turn, which may be nil, is paused
// during the wait.
func (p *Pool) Refresh(ctx context.Context, turn condition.Turn, l *Lease, at time.Time, part int64) error {
	if l.request == nil {
		p.ask(ctx, l, at, storage.Ask{At: part})
	}
	return p.await(ctx, turn, l)
}

// Take takes n places of a window for an intent that is decided at a time, in a part. It
// returns false if the places would raise the window's total above limit.
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

// serves reports whether n places are free within a limit. The places must be for the intent's
// part, or for the next part if the intent began earlier.
func (l *Lease) serves(part, limit, n int64) bool {
	return l.free >= n && l.limit <= limit && (l.asked == part || l.asked == part+1)
}

// question returns a request for at least n places. It asks for twice as many as the last
// request, unless the last request was long ago. Therefore a busy process asks seldom, and a
// quiet process holds few places.
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

// GiveBack ends a claim of n unused places. Callers must hold the lock.
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

// ask begins a request, which also gives back the free places. The request goes on after ctx
// has ended, because otherwise the answer and its places would be lost. l must have no request
// under way.
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

// Await waits until done is closed or ctx ends. turn, which may be nil, is paused during the
// wait.
func Await(ctx context.Context, turn condition.Turn, done <-chan struct{}) error {
	defer condition.Paused(turn)()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run gives idle places back to the store once a second until ctx ends. Each time it then calls
// idle with the lock held. When ctx ends, Run gives all places back.
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

// Stop gives all places back and waits at most five seconds for the store's answers.
func (p *Pool) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*idleAfter)
	defer cancel()
	p.Return(ctx, true)
	p.Return(ctx, true) // places granted meanwhile
	if err := ctx.Err(); err != nil && p.Lost != nil {
		p.Lost(err)
	}
}

// Return gives back the places that were not used since the last call. If all is true, it gives
// back all places and also waits for requests under way. It stops when ctx ends.
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
