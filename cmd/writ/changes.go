package main

import (
	"context"
	"errors"
	"time"

	"writ.example/writ/storage"
)

// signEvery is how often changes of documents are signed.
const signEvery = 500 * time.Millisecond

// signChanges puts the changes of documents into the chain while this replica leads. The
// changes may be from any replica. After ctx has ended, signChanges signs once more. A lasting
// failure is logged once. While it lasts, the changes wait in the store.
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
		if err != nil && !failing && !errors.Is(err, storage.ErrUnavailable) { // the store logs that
			n.log.Error("changes of documents could not be signed: they wait", "error", err)
		}
		failing = err != nil
	}
}

// signOnce signs the waiting changes. The end of ctx does not stop it, so that no change is
// left unsigned at shutdown.
func (n *node) signOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.drain)
	defer cancel()
	return n.ledger.SignChanges(ctx, n.store)
}
