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
	// stand has the stored entry for each entry, nil if that is the entry itself.
	stand []*storage.Entry
	err   error

	one    [1]place // where places is of one record
	oneOut [1]Outcome
}

// place is a record in flight, with its place in the meter.
type place struct {
	record   *storage.Record
	leaf     [32]byte // of record's receipt
	reserved *Reservation
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
// intents or entries. existing begins with what is stored for each place and each entry,
// nil if w's own.
func (w *waiter) raced(existing storage.Batch) bool {
	return w.whole && (slices.ContainsFunc(existing.Records[:len(w.places)], func(r *storage.Record) bool {
		return r != nil
	}) ||
		slices.ContainsFunc(existing.Entries[:len(w.entries)], func(e *storage.Entry) bool { return e != nil }))
}

// beaten reports whether a place was not stored because another verdict stands in the
// place of its own. existing begins with what is stored for each of w's entries.
func (w *waiter) beaten(p *place, existing []*storage.Entry) bool {
	return p.verdict != nil && existing[slices.Index(w.entries, p.verdict)] != nil
}

// tentative reports whether some of w may end up not stored though it is first.
func (w *waiter) tentative() bool {
	return w.whole || slices.ContainsFunc(w.places, func(p place) bool { return p.verdict != nil })
}

// cut returns what is of w in existing and what is of the waiters after it.
func (w *waiter) cut(existing storage.Batch) (own, rest storage.Batch) {
	n, m := len(w.places), len(w.entries)
	return storage.Batch{Records: existing.Records[:n], Entries: existing.Entries[:m]},
		storage.Batch{Records: existing.Records[n:], Entries: existing.Entries[m:]}
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
	copy(stand, w.stand)
	*w = waiter{done: w.done}
	ws.pool.Put(w)
	return err
}
