// Package lease keeps the places that a store has granted to this process: see [storage.Quotas]. A
// place is one unit of the count of a window. For example, the meter of a month is a window. If
// several processes decide, the counters of rules have windows in the store, too.
//
// An intent takes places within a limit. Each call may have another limit:
//
//	claim, ok, err := pool.Take(ctx, turn, lease, at, part, limit, n)
//
// An intent gets places that the store has granted within this limit or within a lower limit. So
// all processes together stay within the limit, although each process learns of the counts of other
// processes late. If the process has no such places, it sends the store one request for all waiting
// intents. The first request is for as many places as an intent needs. Each later request is for
// twice as many. If the store answers that a limit is reached, the process trusts this answer for a
// quarter of a second.
//
// [Pool.GiveBack] makes unused places free again. [Pool.Run] gives places back to the store when
// they were idle for one or two seconds. Places of a meter that has ample places stay for minutes, so
// that an organization that decides now and then costs no requests. The places of a failed or lost
// request stay taken. In a meter they stay taken until the store considers this process dead. In another
// window they stay taken until they have left the window.
package lease

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

const (
	// answerFor is how long a total from the store is trusted, by the clock of decisions. It keeps
	// the number of requests small for an organization at its limit.
	answerFor = 250 * time.Millisecond
	// idleAfter is the interval at which idle places are given back.
	idleAfter = time.Second
	// portion bounds a request: at most portion times the places that the intent needs. If the
	// lease's smallest request is larger, the request has that size.
	portion = 256
	// keptFor is how long idle places of a meter are kept while places are ample, in intervals of
	// idleAfter.
	keptFor = int(5 * time.Minute / idleAfter)
	// together is how many requests are under way when places are given back.
	together = 16
)

// NoLimit is a limit that no count reaches.
const NoLimit = storage.NoLimit

// Store grants places.
type Store interface {
	Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error)
}

// Pool has the leases of a process. Its lock guards the leases. The owner of a lease may guard its
// own data about the lease with the same lock. Hold the lock to call any method of a lease. Of the
// pool's methods, the comments say which ones need the lock.
type Pool struct {
	sync.Mutex
	// Lost may be nil. It is called with the error if places could not be given back.
	Lost func(error)
	// Scarce may be nil, if the store's places are never ample. It is [storage.Quotas.Scarce].
	Scarce func(ctx context.Context, meters []storage.Window) ([]bool, error)
	// Asked counts the requests for places. Failed counts all requests that failed.
	Asked, Failed atomic.Int64

	store Store
	lent  map[*Lease]struct{} // leases that have places to give back, or a request under way
}

// NewPool returns an empty pool for the places of a store.
func NewPool(store Store) *Pool { return &Pool{store: store, lent: make(map[*Lease]struct{})} }

// Lease has the places of a window that this process holds.
type Lease struct {
	window storage.Window
	least  int64 // the least number of places to request
	// total is the window's total over all processes, from the store's last answer. It includes
	// free. at is the time of that answer, or zero if total is out of date.
	total int64
	at    time.Time
	// free is the number of free places. part is the part of the window in which they count. limit
	// is the limit within which they were granted. asked is the part whose intents may use them.
	free, part, limit, asked int64
	// answers counts the store's answers. Unused places from an earlier answer do not become free
	// again.
	answers uint32
	want    int64                // how many places the next request is for
	back    []storage.WindowPart // places that will be given back to the store
	ample   bool                 // idle places may be kept for minutes
	open    bool                 // other processes may have idle places, so total refuses nobody
	idle    int                  // the calls of Return since places were taken
	request *request             // the request whose answer is not there yet, or nil
}

// request is a request to the store. All intents that need places of the lease wait for its answer.
type request struct {
	done chan struct{} // closed when the answer is there
	err  error         // set before the channel is closed
}

// Claim identifies taken places by the store's answer and the part. The zero Claim has no places.
type Claim struct {
	part   int64
	answer uint32
}

// New returns a lease of a window. Each request of the lease is for at least the given number of
// places.
func New(w storage.Window, least int64) *Lease { return &Lease{window: w, least: least} }

// Learn sets the total of the window, and the time of that total.
func (l *Lease) Learn(total int64, at time.Time) { l.total, l.at = total, at }

// Doubt marks the known total as out of date.
func (l *Lease) Doubt() { l.at = time.Time{} }

// Total returns the total of the window. This is the store's last answer, plus the granted places
// that this process has taken since then.
func (l *Lease) Total() int64 { return l.total - l.free }

// IsIdle reports whether l has no places to give back and no request under way.
func (l *Lease) IsIdle() bool { return l.isEmptyHanded() && l.request == nil }

func (l *Lease) isEmptyHanded() bool { return l.free == 0 && len(l.back) == 0 }

// IsKnown reports whether Total is recent enough to be trusted at the given time.
func (l *Lease) IsKnown(at time.Time) bool { return l.request == nil && l.isBelieved(at) }

func (l *Lease) isBelieved(at time.Time) bool {
	age := at.Sub(l.at)
	return len(l.back) == 0 && age < answerFor && age > -answerFor
}

// Refresh asks the store for the total of a window in a part. Callers of Refresh and Take must hold
// the lock. Both methods release it while they wait. turn may be nil. If not, it is paused during
// the wait.
func (p *Pool) Refresh(ctx context.Context, turn condition.Turn, l *Lease, at time.Time, part int64) error {
	if l.request == nil {
		p.ask(ctx, l, at, storage.Ask{At: part})
	}
	return p.await(ctx, turn, l.request)
}

// Take takes n places of a window, in a part, for an intent that is decided at a time. It returns
// false if the window's total would then exceed limit.
func (p *Pool) Take(
	ctx context.Context, turn condition.Turn, l *Lease, at time.Time, part, limit, n int64,
) (Claim, bool, error) {
	for {
		if l.request == nil {
			switch known := l.isBelieved(at); {
			case known && !l.open && limit-l.Total() < n:
				return Claim{}, false, nil
			case n == 0 && known, n > 0 && l.serves(part, limit, n):
				l.free -= n
				l.idle = 0
				return Claim{l.part, l.answers}, true, nil
			}
			p.ask(ctx, l, at, l.question(at, part, limit, n))
		}
		if err := p.await(ctx, turn, l.request); err != nil {
			return Claim{}, false, err
		}
	}
}

// serves reports whether n places are free within a limit. They must have been granted for the
// intent's part, or for the next part if the intent began earlier.
func (l *Lease) serves(part, limit, n int64) bool {
	return l.free >= n && l.limit <= limit && (l.asked == part || l.asked == part+1)
}

// question returns a request for at least n places. It asks for twice as many places as the last
// request, unless the last request was long ago. So a busy process sends few requests, and a quiet
// process holds few places.
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

// GiveBack makes n unused places of a claim free again. Callers must hold the lock.
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

// ask begins a request, which also gives back the free places. The request continues after ctx has
// ended. Otherwise the granted places would be lost with the answer. l must have no request under
// way.
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
		granted, err := p.count(context.WithoutCancel(ctx), l.window, ask)
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
			if l.ample = granted.Ample; ask.Want > 0 {
				l.open = granted.N >= ask.Need && (granted.Ample || granted.Wait > 0)
			}
		}
		if l.isEmptyHanded() {
			delete(p.lent, l)
		}
		r.err = err
		close(r.done)
		l.request = nil
	}()
}

// count sends a request. It repeats the request while another process may have idle places that it
// has yet to give back.
func (p *Pool) count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	for {
		granted, err := p.store.Count(ctx, w, ask)
		if err != nil || granted.N >= ask.Need || granted.Wait <= 0 {
			return granted, err
		}
		ask.Back = nil
		time.Sleep(granted.Wait)
	}
}

// await waits for the answer to a request. It returns ctx's error if ctx ends first.
func (p *Pool) await(ctx context.Context, turn condition.Turn, r *request) error {
	p.Unlock()
	defer p.Lock()
	if err := Await(ctx, turn, r.done); err != nil {
		return err
	}
	return r.err
}

// Await waits until done is closed or ctx ends. turn may be nil. If not, it is paused during the
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
// idle while it holds the lock. When ctx ends, Run gives all places back.
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

// Stop gives all places back. It waits at most five seconds for the store's answers.
func (p *Pool) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*idleAfter)
	defer cancel()
	p.Return(ctx, true)
	p.Return(ctx, true) // gives back places that were granted meanwhile
	if err := ctx.Err(); err != nil && p.Lost != nil {
		p.Lost(err)
	}
}

// Return gives back the places that were not used since the last call. Places in a meter whose
// places are ample stay until they were not used for minutes. With all set, Return gives back every
// place and also waits for requests under way. It stops when ctx ends.
func (p *Pool) Return(ctx context.Context, all bool) {
	p.Lock()
	defer p.Unlock()
	idle, kept := make([]*Lease, 0, len(p.lent)), []*Lease(nil)
	for l := range p.lent {
		switch {
		case all || l.request == nil && len(l.back) > 0:
			idle = append(idle, l)
		case l.request != nil || l.idle == 0:
		case l.ample && l.idle < keptFor:
			kept = append(kept, l)
		default:
			idle = append(idle, l)
		}
		l.idle++
	}
	for part := range slices.Chunk(append(idle, p.scarce(ctx, kept)...), together) {
		if !p.returned(ctx, part) {
			return
		}
	}
}

// scarce returns the leases that are still idle and whose places are scarce now. If the store can't
// tell, it returns none. The lock is not held while it waits.
func (p *Pool) scarce(ctx context.Context, kept []*Lease) (scarce []*Lease) {
	if len(kept) == 0 {
		return nil
	}
	meters := make([]storage.Window, len(kept))
	for i, l := range kept {
		meters[i] = l.window
	}
	p.Unlock()
	are, err := p.Scarce(ctx, meters)
	p.Lock()
	if err != nil {
		p.Failed.Add(1)
		return nil
	}
	for i, l := range kept {
		if !are[i] {
			continue
		}
		if l.ample = false; l.request == nil && l.idle > 1 {
			scarce = append(scarce, l)
		}
	}
	return scarce
}

// returned gives back the places of leases. It returns false if ctx has ended.
func (p *Pool) returned(ctx context.Context, leases []*Lease) bool {
	requests := make([]*request, len(leases))
	for i, l := range leases {
		if l.request == nil {
			l.want = 0
			p.ask(ctx, l, l.at, storage.Ask{At: l.asked})
		}
		requests[i] = l.request
	}
	for _, r := range requests {
		err := p.await(ctx, nil, r)
		if ctx.Err() != nil {
			return false
		}
		if err != nil && p.Lost != nil {
			p.Lost(err)
		}
	}
	return true
}
