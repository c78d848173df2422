package main

import (
	"context"
	"errors"
	"time"

	"writ/storage"
)

// signEvery is how often changes of documents are put into the chain.
const signEvery = 500 * time.Millisecond

// signChanges puts changes of documents into the chain, soon after they were made by
// any replica, while this one leads, and once ctx has ended a last time. A failure is logged once for as long as it
// lasts: until then the changes wait in the store.
func (n *node) signChanges(ctx context.Context) {
	tick := time.NewTicker(signEvery)
	defer tick.Stop()
	for failing, last := false, false; !last; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		if !last && !n.store.Leads() {
			continue
		}
		err := n.signOnce(ctx)
		if err != nil && !failing && !errors.Is(err, storage.ErrUnavailable) { // the store has logged that
			n.log.Error("changes of documents could not be signed: they wait", "error", err)
		}
		failing = err != nil
	}
}

// signOnce signs what there is. It does not end with ctx, so that what is there at
// a stop is signed.
func (n *node) signOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.drain)
	defer cancel()
	return n.ledger.SignChanges(ctx, n.store)
}
