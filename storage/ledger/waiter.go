package ledger

import (
	"context"
	"slices"
	"sync"
	"time"

	"writ.example/writ/storage"
)

// waiter is one caller's commit. The committer owns the waiter until it sends on done. Then the
// caller owns the waiter. If the caller has left, nobody uses the waiter again.
type waiter struct {
	// places and entries are to be committed. A waiter without places and entries only waits for
	// the committer to reach it.
	places  []place
	entries []*storage.Entry
	whole   bool // the records are stored all or none
	queued  time.Time

	done chan struct{} // has a buffer of one
	outs []Outcome     // one for each place, unless err is set
	// existing has the earlier stored record of each place and the earlier stored entry
	// of each entry. It has nil if w's own record or entry was the first.
	existing storage.Batch
	err      error

	one    [1]place // the memory of places if there is only one place
	oneOut [1]Outcome
}

// place is a record in flight, with its place in the meter.
type place struct {
	record   *storage.Record
	leaf     [32]byte // of record's receipt
	reserved *Reservation
	used     bool // whether it uses its place in the meter; set before reserved ends
	// verdict is stored together with record, or neither is stored. It is one of the
	// waiter's entries. It is nil for a decision without an approval.
	verdict *storage.Entry
}

// under returns the leaf of p's record under a key. The key may have changed since the
// record was made.
func (p *place) under(keyID string) [32]byte {
	if p.record.Receipt.KeyID != keyID {
		p.record.Receipt.KeyID = keyID
		p.leaf = p.record.Receipt.LeafHash()
	}
	return p.leaf
}

// org is the organization whose share of the queue w uses. It is empty if w commits
// nothing.
func (w *waiter) org() string {
	switch {
	case len(w.places) > 0:
		return w.places[0].record.OrganizationID
	case len(w.entries) > 0:
		return w.entries[0].OrganizationID
	}
	return ""
}

// size is how many intents w counts as.
func (w *waiter) size() int { return max(1, len(w.places)+len(w.entries)) }

// raced reports whether w, which is whole, was not stored because one of its intents or
// entries exists already.
func (w *waiter) raced() bool {
	return w.whole && (slices.ContainsFunc(w.existing.Records, func(r *storage.Record) bool { return r != nil }) ||
		slices.ContainsFunc(w.existing.Entries, func(e *storage.Entry) bool { return e != nil }))
}

// stored reports whether the record of place i was stored. It was not stored if an
// earlier record or an earlier verdict exists. stored must not be called if w has raced.
func (w *waiter) stored(i int) bool {
	v := w.places[i].verdict
	return w.existing.Records[i] == nil && (v == nil || w.existing.Entries[slices.Index(w.entries, v)] == nil)
}

// tentative reports whether a record or entry of w may stay unstored although the store
// has no earlier one.
func (w *waiter) tentative() bool {
	return w.whole || slices.ContainsFunc(w.places, func(p place) bool { return p.verdict != nil })
}

// wake hands w back to its caller.
func (w *waiter) wake() { w.done <- struct{}{} }

// waiters recycles waiters. The zero value is ready.
type waiters struct{ pool sync.Pool }

// get returns a waiter with n places.
func (ws *waiters) get(n int) *waiter {
	w, ok := ws.pool.Get().(*waiter)
	if !ok {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	if n > 1 {
		w.places, w.outs = make([]place, n), make([]Outcome, n)
	} else {
		w.places, w.outs = w.one[:n], w.oneOut[:n]
	}
	return w
}

// wait waits until w is committed. It copies w's outcomes to outs and w's existing
// entries to existing, recycles w and returns the error of the commit. If ctx ends first,
// it returns ctx's error.
func (ws *waiters) wait(ctx context.Context, w *waiter, outs []Outcome, existing []*storage.Entry) error {
	select {
	case <-w.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := w.err
	copy(outs, w.outs)
	copy(existing, w.existing.Entries)
	*w = waiter{done: w.done}
	ws.pool.Put(w)
	return err
}
