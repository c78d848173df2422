package ledger

import (
	"context"
	"slices"
	"sync"
	"time"

	"writ/storage"
)

// waiter is what one caller commits together. The committer owns it until it sends on
// done, then the caller; a caller that has left drops it.
type waiter struct {
	// places and entries are what is committed. A waiter with neither only waits until
	// the committer reaches it.
	places  []place
	entries []*storage.Entry
	whole   bool // the records are stored all or none
	queued  time.Time

	done chan struct{} // holds one
	outs []Outcome     // one for each place, unless err is set
	// existing is what the store has for each place and each entry, nil if that is w's own.
	existing storage.Batch
	err      error

	one    [1]place // where places is of one record
	oneOut [1]Outcome
}

// place is a record in flight, with its place in the meter.
type place struct {
	record   *storage.Record
	leaf     [32]byte // of record's receipt
	reserved *Reservation
	used     bool // the place in the meter, once reserved ends
	// verdict is stored with record, both or none. It is one of the waiter's entries, nil
	// if there is none.
	verdict *storage.Entry
}

// under returns the leaf of p's record as keyID signs it. The key may have changed since
// the record was made.
func (p *place) under(keyID string) [32]byte {
	if p.record.Receipt.KeyID != keyID {
		p.record.Receipt.KeyID = keyID
		p.leaf = p.record.Receipt.LeafHash()
	}
	return p.leaf
}

// org is the organization whose share of the queue w uses, empty if w commits nothing.
func (w *waiter) org() string {
	switch {
	case len(w.places) > 0:
		return w.places[0].record.OrganizationID
	case len(w.entries) > 0:
		return w.entries[0].OrganizationID
	}
	return ""
}

// size is what w counts towards a bound on intents.
func (w *waiter) size() int { return max(1, len(w.places)+len(w.entries)) }

// raced reports whether w was not stored because something else stands for one of its
// intents or entries.
func (w *waiter) raced() bool {
	return w.whole && (slices.ContainsFunc(w.existing.Records, func(r *storage.Record) bool { return r != nil }) ||
		slices.ContainsFunc(w.existing.Entries, func(e *storage.Entry) bool { return e != nil }))
}

// stored reports whether the record of a place was stored, unless w has raced: no other
// stands in its place, nor another verdict in that of its own.
func (w *waiter) stored(i int) bool {
	v := w.places[i].verdict
	return w.existing.Records[i] == nil && (v == nil || w.existing.Entries[slices.Index(w.entries, v)] == nil)
}

// tentative reports whether some of w may end up not stored though it is first.
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

// wait puts what was decided about w, which ends w, into outs, and what stands for its entries
// into stand. It returns what kept w from being committed, or ctx's error.
func (ws *waiters) wait(ctx context.Context, w *waiter, outs []Outcome, stand []*storage.Entry) error {
	select {
	case <-w.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := w.err
	copy(outs, w.outs)
	copy(stand, w.existing.Entries)
	*w = waiter{done: w.done}
	ws.pool.Put(w)
	return err
}
