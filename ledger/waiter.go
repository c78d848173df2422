package ledger

import (
	"context"
	"sync"
	"time"

	"writ/storage"
)

// waiter is one commit on its way through the queue. The committer owns it
// until it sends on done; then the caller does, unless it has gone, when the
// garbage collector does.
type waiter struct {
	record *storage.Record // nil: waits for the committer to reach it, no more
	leaf   [32]byte        // of record's receipt
	meter  *meter          // where record has a place in flight
	queued time.Time       // when the queue took it

	done chan struct{} // holds one
	out  Outcome
	err  error
}

// org is whose turn w is: nobody's where it commits nothing.
func (w *waiter) org() string {
	if w.record == nil {
		return ""
	}
	return w.record.OrganizationID
}

// decide sets what wake will tell.
func (w *waiter) decide(out Outcome, err error) { w.out, w.err = out, err }

// wake hands w back to its caller.
func (w *waiter) wake() { w.done <- struct{}{} }

// waiters recycles waiters. The zero value is ready.
type waiters struct{ pool sync.Pool }

// get returns a waiter for r, or one that commits nothing if r is nil.
func (ws *waiters) get(r *storage.Record, m *meter) *waiter {
	w, ok := ws.pool.Get().(*waiter)
	if !ok {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	w.record, w.meter = r, m
	if r != nil {
		w.leaf = r.Receipt.LeafHash()
	}
	return w
}

// wait returns what was decided about w, which ends w, or ctx's error.
func (ws *waiters) wait(ctx context.Context, w *waiter) (Outcome, error) {
	select {
	case <-w.done:
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
	out, err := w.out, w.err
	*w = waiter{done: w.done}
	ws.pool.Put(w)
	return out, err
}
