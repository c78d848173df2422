package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"writ/engine/condition"
	"writ/storage"
)

const (
	// grantSize is how many places are requested at once: one request to the store
	// serves as many decisions.
	grantSize = 4096
	// grantBeyond is how many places above the limit are requested. After as many
	// decisions the store is asked again for places within the limit.
	grantBeyond = 64
	// quotaIdle is the least idle time, and half of the longest, after which the places
	// of a quota go back to the store. It bounds memory to organizations that are active.
	quotaIdle = time.Second
)

// places are places in a meter, by whether they lie within the limit.
type places struct{ within, beyond int64 }

type quotaKey struct {
	org   string
	month storage.Month
}

// quota holds the places that the store has granted to this ledger in one organization's
// meter of one month. A decision takes a place before it is evaluated and uses it up if
// it is stored.
type quota struct {
	key      quotaKey
	limit    int64 // that free was granted under
	free     places
	inFlight int64
	asking   *asking // not nil during a request to the store, when no place is taken
}

// asking is a request to the store, for all that wait for places. done is closed when it
// is answered.
type asking struct {
	done chan struct{}
	err  error // set before
}

type quotas struct {
	store Store
	log   *slog.Logger

	mu     sync.Mutex
	recent map[quotaKey]*quota // used since the last sweep
	rest   map[quotaKey]*quota // used before
	closed bool
	done   chan struct{}  // closed with it
	swept  chan struct{}  // closed when run has returned
	asks   sync.WaitGroup // of the store; not added to once closed is set
	ended  sync.Pool      // of *Reservation

	grants, failures atomic.Int64
}

func newQuotas(store Store, log *slog.Logger) *quotas {
	return &quotas{
		store: store, log: log, recent: make(map[quotaKey]*quota), rest: make(map[quotaKey]*quota),
		done: make(chan struct{}), swept: make(chan struct{}),
	}
}

// take takes a place of key for r.
func (qs *quotas) take(ctx context.Context, turn condition.Turn, key quotaKey, r *Reservation) error {
	for {
		qs.mu.Lock()
		if qs.closed {
			qs.mu.Unlock()
			return ErrClosed
		}
		q := qs.findLocked(key)
		if q.asking == nil {
			if q.takeLocked(r) {
				qs.mu.Unlock()
				return nil
			}
			stale := int64(0) // places of another limit, which go back
			if q.limit != r.limit {
				stale, q.free = q.free.within+q.free.beyond, places{}
			}
			qs.beginLocked(q)
			go qs.ask(context.WithoutCancel(ctx), q, r.limit, stale)
		}
		a := q.asking
		qs.mu.Unlock()
		if err := a.await(ctx, turn); err != nil {
			return err
		}
	}
}

// findLocked returns the quota of key, a new one if there is none.
func (qs *quotas) findLocked(key quotaKey) *quota {
	if q := qs.recent[key]; q != nil {
		return q
	}
	q := qs.rest[key]
	if q == nil {
		key.org = strings.Clone(key.org) // it may be a piece of something large
		q = &quota{key: key}
	}
	delete(qs.rest, q.key)
	qs.recent[q.key] = q
	return q
}

// takeLocked takes a place that is free for r, if the store need not be asked.
func (q *quota) takeLocked(r *Reservation) bool {
	if r.limit != q.limit || q.free == (places{}) {
		return false
	}
	if r.within = q.free.within > 0; r.within {
		q.free.within--
	} else {
		q.free.beyond--
	}
	q.inFlight++
	r.quota = q
	return true
}

// await waits for the store's answer, or until ctx ends.
func (a *asking) await(ctx context.Context, turn condition.Turn) error {
	defer condition.Paused(turn)()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for places in the meter: %w", ctx.Err())
	}
}

// beginLocked begins to ask the store for q, which answerLocked ends.
func (qs *quotas) beginLocked(q *quota) {
	q.asking = &asking{done: make(chan struct{})}
	qs.asks.Add(1)
}

func (qs *quotas) answerLocked(q *quota, err error) {
	q.asking.err = err
	close(q.asking.done)
	q.asking = nil
	qs.asks.Done()
}

// ask returns the stale places of q to the store and requests places under limit. Stale
// places are not used again even if returning them fails. ask ends the asking. It does
// not end with its caller: places that are granted after all callers have left serve the
// next one, or go back when q is idle.
func (qs *quotas) ask(ctx context.Context, q *quota, limit, stale int64) {
	granted, returned, err := qs.exchange(ctx, q.key, limit, stale)
	qs.grants.Add(1)
	if err != nil {
		qs.failures.Add(1)
		err = fmt.Errorf("asking for places in the meter: %w", err)
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q.limit != limit && returned { // what was given back meanwhile is of the other limit
		q.free, q.limit = places{beyond: q.free.within + q.free.beyond}, limit
	}
	q.free.within += granted.within
	q.free.beyond += granted.beyond
	qs.answerLocked(q, err)
}

func (qs *quotas) exchange(ctx context.Context, key quotaKey, limit, stale int64) (granted places, returned bool, err error) {
	if stale > 0 {
		if err := qs.store.Return(ctx, key.org, key.month, stale); err != nil {
			return places{}, false, err
		}
	}
	granted.within, err = qs.store.Grant(ctx, key.org, key.month, limit, grantSize)
	if err == nil && granted.within == 0 {
		granted.beyond, err = qs.store.Grant(ctx, key.org, key.month, math.MaxInt64, grantBeyond)
	}
	if err == nil && granted == (places{}) {
		err = errors.New("the store grants no place above every limit")
	}
	return granted, true, err
}

// endLocked ends r, unless it is ended. A place that is not used is free again: one that
// was within another limit is above this one.
func (qs *quotas) endLocked(r *Reservation, used bool) {
	q := r.quota
	if q == nil {
		return
	}
	r.quota = nil
	q.inFlight--
	switch {
	case used:
	case r.within && r.limit == q.limit:
		q.free.within++
	default:
		q.free.beyond++
	}
	qs.ended.Put(r)
}

// settle ends the reservations of a batch: the places of the records that were stored and are
// metered are used. existing is what stands for each element, nil where nothing was
// stored.
func (qs *quotas) settle(batch []*waiter, existing *storage.Batch) {
	var own, rest storage.Batch
	if existing != nil {
		rest = *existing
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, w := range batch {
		if existing != nil {
			own, rest = w.cut(rest)
		}
		kept := existing != nil && !w.raced(own)
		for i := range w.places {
			p := &w.places[i]
			qs.endLocked(p.reserved, kept && own.Records[i] == nil && p.record.Metered())
		}
	}
}

// run returns what is idle to the store until close.
func (qs *quotas) run(ctx context.Context) {
	defer close(qs.swept)
	tick := time.NewTicker(quotaIdle)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			qs.sweep(ctx)
		case <-qs.done:
			return
		}
	}
}

// sweep returns the places of the quotas that were not used since the sweep before.
func (qs *quotas) sweep(ctx context.Context) {
	qs.mu.Lock()
	idle := make([]*quota, 0, len(qs.rest))
	for key, q := range qs.rest {
		if q.inFlight > 0 || q.asking != nil {
			continue
		}
		if q.free == (places{}) {
			delete(qs.rest, key)
			continue
		}
		qs.beginLocked(q)
		idle = append(idle, q)
	}
	maps.Copy(qs.rest, qs.recent)
	clear(qs.recent)
	qs.mu.Unlock()
	for _, q := range idle {
		qs.giveUp(ctx, q)
	}
}

// giveUp returns q's places. It has them no more, even if the store fails: it may have
// taken them back. q.asking is the caller's.
func (qs *quotas) giveUp(ctx context.Context, q *quota) {
	err := qs.store.Return(ctx, q.key.org, q.key.month, q.free.within+q.free.beyond)
	if err != nil {
		qs.failures.Add(1)
		qs.log.WarnContext(ctx, "places in a meter could not be given back: nobody has them until this process ends", "error", err)
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.free = places{}
	qs.answerLocked(q, err)
}

// close makes take refuse.
func (qs *quotas) close() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !qs.closed {
		qs.closed = true
		close(qs.done)
	}
}

// stop waits for the requests under way and returns all places to the store. It is
// called after close, when no reservation is left.
func (qs *quotas) stop(ctx context.Context) {
	<-qs.swept
	qs.asks.Wait()
	qs.sweep(ctx)
	qs.sweep(ctx)
}
