package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
)

// grantSize is how many places of a meter are requested at once. One request to the store
// serves this many decisions.
const grantSize = 4096

type quotaKey struct {
	org   string
	month storage.Month
}

// quota is an organization's meter of one month. A decision takes a place before it is
// evaluated, and uses the place up when it is stored.
type quota struct {
	key      quotaKey
	lease    *lease.Lease
	inFlight int64 // reservations and callers of take
}

// quotas are the meters in use. The pool's lock guards them.
type quotas struct {
	*lease.Pool
	byKey  map[quotaKey]*quota
	ended  sync.Pool // of *Reservation
	closed bool
	close  context.CancelFunc // stops run
	idle   chan struct{}      // closed when run has returned
}

// newQuotas returns quotas. They return idle places to the store until close is called.
func newQuotas(ctx context.Context, cfg *Config) *quotas {
	qs := &quotas{Pool: lease.NewPool(cfg.Store), byKey: make(map[quotaKey]*quota), idle: make(chan struct{})}
	qs.Scarce = cfg.Store.Scarce
	qs.Lost = func(err error) {
		cfg.Log.WarnContext(ctx, "places in a meter could not be given back: nobody has them until this process ends",
			"error", err)
	}
	ctx, qs.close = context.WithCancel(ctx)
	go func() {
		defer close(qs.idle)
		qs.Run(ctx, qs.forget)
	}()
	return qs
}

// take takes a place in the meter of key for r. If no place is left within r's limit, it
// takes a place above the limit.
func (qs *quotas) take(ctx context.Context, turn condition.Turn, key quotaKey, r *Reservation) (err error) {
	qs.Lock()
	defer qs.Unlock()
	if qs.closed {
		return ErrClosed
	}
	q := qs.byKey[key]
	if q == nil {
		key.org = strings.Clone(key.org) // it may be part of a large text
		q = &quota{key: key, lease: lease.New(storage.Window{Org: key.org, Month: key.month}, grantSize)}
		qs.byKey[key] = q
	}
	q.inFlight++
	part := int64(key.month)
	r.claim, r.within, err = qs.Take(ctx, turn, q.lease, r.at, part, r.limit, 1)
	taken := r.within
	if err == nil && !taken {
		r.claim, taken, err = qs.Take(ctx, turn, q.lease, r.at, part, lease.NoLimit, 1)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("asking for places in the meter: %w", err)
	case !taken:
		err = errors.New("the store grants no place above every limit")
	case qs.closed:
		qs.GiveBack(q.lease, r.claim, 1)
		err = ErrClosed
	default:
		r.quota = q
		return nil
	}
	q.inFlight--
	return err
}

// endLocked ends r, unless it has ended. An unused place is given back.
func (qs *quotas) endLocked(r *Reservation, used bool) {
	q := r.quota
	if q == nil {
		return
	}
	r.quota = nil
	q.inFlight--
	if !used {
		qs.GiveBack(q.lease, r.claim, 1)
	}
	qs.ended.Put(r)
}

// settle ends the reservations of waiters. The field used of a place must be set before.
func (qs *quotas) settle(waiters ...*waiter) {
	qs.Lock()
	defer qs.Unlock()
	for _, w := range waiters {
		for i := range w.places {
			qs.endLocked(w.places[i].reserved, w.places[i].used)
		}
	}
}

// forget removes the meters that are idle.
func (qs *quotas) forget() {
	for key, q := range qs.byKey {
		if q.inFlight == 0 && q.lease.IsIdle() {
			delete(qs.byKey, key)
		}
	}
}

// refuse makes take return ErrClosed.
func (qs *quotas) refuse() {
	qs.Lock()
	defer qs.Unlock()
	qs.closed = true
	qs.close()
}

// stop returns all places to the store. It is called after refuse, when all commits are
// settled.
func (qs *quotas) stop(ctx context.Context) {
	<-qs.idle
	qs.Stop(ctx)
}
