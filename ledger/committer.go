package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"writ/ledger/receipt"
	"writ/storage"
)

// committer writes one batch after the other. Its fields belong to the
// goroutine of run.
type committer struct {
	cfg     *Config
	quotas  *quotas
	metrics *metrics

	// unknown is a batch that may be stored or not, though its callers were refused.
	// Its claims are held until that is known.
	unknown []*waiter

	refused int // intents refused for the failure that lasts; 0: commits succeed
	leaves  [][32]byte
}

// run commits the waiters of q until q is closed and empty. After ctx ends it refuses
// them.
func (c *committer) run(ctx context.Context, q *queue) {
	var batch []*waiter
	for {
		batch = q.take(batch, maxCommit)
		if len(batch) == 0 {
			return
		}
		c.metrics.queueWait.Observe(time.Since(batch[0].queued).Seconds())
		for rest := batch; len(rest) > 0; {
			n := separable(rest)
			c.serve(ctx, rest[:n])
			rest = rest[n:]
		}
		clear(batch)
	}
}

// separable returns how many waiters of batch can be committed together. The records of
// a whole waiter may end up not stored, so no other waiter of the batch may be answered
// with one of them: a second waiter with the same intent begins the next batch.
func separable(batch []*waiter) int {
	if !slices.ContainsFunc(batch, func(w *waiter) bool { return w.whole }) {
		return len(batch)
	}
	type intent struct{ org, id string }
	decided := make(map[intent]bool, 2*len(batch)) // and whether by one that is whole
	for n, w := range batch {
		for i := range w.places {
			name := intent{w.org(), w.places[i].record.IntentID}
			if whole, twice := decided[name]; twice && (whole || w.whole) {
				return max(n, 1) // a whole one has no intent twice
			}
		}
		for i := range w.places {
			decided[intent{w.org(), w.places[i].record.IntentID}] = w.whole
		}
	}
	return len(batch)
}

// serve wakes all of batch.
func (c *committer) serve(ctx context.Context, batch []*waiter) {
	err := c.recoverUnknown(ctx)
	batch = wakeFlushes(batch, err)
	if len(batch) == 0 {
		return
	}
	if err != nil {
		c.quotas.settle(batch, nil)
		c.refuse(ctx, batch, err)
		return
	}
	existing, err := c.try(ctx, batch)
	doubt := errors.Is(err, storage.ErrUnknown)
	if doubt { // the same batch again: what is stored of it is found
		if existing, err = c.try(ctx, batch); err == nil {
			adopt(batch, existing.Records)
		}
	}
	switch {
	case err == nil:
		c.quotas.settle(batch, existing.Records)
		c.answer(ctx, batch, existing)
		return
	case doubt:
		c.unknown = remembered(batch)
	default:
		c.quotas.settle(batch, nil)
	}
	c.refuse(ctx, batch, err)
}

// remembered copies batch, whose waiters go back to their callers.
func remembered(batch []*waiter) []*waiter {
	kept := make([]*waiter, len(batch))
	for i, w := range batch {
		kept[i] = &waiter{places: slices.Clone(w.places), whole: w.whole, entries: w.entries}
	}
	return kept
}

// recoverUnknown finds out what is stored of a batch whose outcome is unknown, by
// appending it again with a seal that signs nothing, so that an intent whose caller was
// refused is not decided later. It returns nil if nothing is unknown, and ErrClosed
// after ctx has ended.
func (c *committer) recoverUnknown(ctx context.Context) error {
	if ctx.Err() != nil {
		return ErrClosed
	}
	if len(c.unknown) == 0 {
		return nil
	}
	existing, err := c.commit(ctx, c.unknown, func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		return storage.Batch{}, receipt.SignedHead{}, nil
	})
	if err != nil {
		return fmt.Errorf("recovering from a failed commit: %w", err)
	}
	stands := existing.Records
	for _, w := range c.unknown {
		for i := range w.places {
			if r := w.places[i].record; stands[i] != nil && stands[i].DecisionID == r.DecisionID {
				stands[i] = nil // it was the first
			} else {
				stands[i] = r
			}
		}
		stands = stands[len(w.places):]
	}
	c.quotas.settle(c.unknown, existing.Records)
	c.unknown = nil
	return nil
}

// adopt makes batch's own what an earlier append of it has stored: a row of one's
// own decision id is one's own.
func adopt(batch []*waiter, existing []*storage.Record) {
	for _, w := range batch {
		for i := range w.places {
			if r := existing[i]; r != nil && r.DecisionID == w.places[i].record.DecisionID {
				w.places[i].record, existing[i] = r, nil
			}
		}
		existing = existing[len(w.places):]
	}
}

// wakeFlushes wakes the waiters that commit nothing with err and returns the
// others.
func wakeFlushes(batch []*waiter, err error) []*waiter {
	commits := batch[:0]
	for _, w := range batch {
		if len(w.places)+len(w.entries) > 0 {
			commits = append(commits, w)
			continue
		}
		w.err = err
		w.wake()
	}
	return commits
}

// try has the store append batch and holds it to its contract: nothing unsigned is
// answered.
func (c *committer) try(ctx context.Context, batch []*waiter) (storage.Batch, error) {
	all, err := c.commit(ctx, batch, c.sealer(batch))
	if err != nil {
		return all, err
	}
	existing := all.Records
	for _, w := range batch {
		if !w.raced(existing) {
			for i := range w.places {
				if existing[i] == nil && w.places[i].record.Receipt.Sig == "" {
					return all, fmt.Errorf("%w: the store took a record as new that it had not sealed", storage.ErrUnknown)
				}
			}
		}
		existing = existing[len(w.places):]
	}
	return all, nil
}

// commit has the store append batch, with a panic of the store's as an error.
func (c *committer) commit(ctx context.Context, batch []*waiter, seal storage.Seal) (existing storage.Batch, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v\n%s", storage.ErrUnknown, p, debug.Stack())
		}
	}()
	all := storage.Batch{Records: make([]*storage.Record, 0, len(batch))}
	for _, w := range batch {
		for i := range w.places {
			all.Records = append(all.Records, w.places[i].record)
		}
		all.Entries = append(all.Entries, w.entries...)
	}
	c.metrics.batchSize.Observe(float64(len(all.Records) + len(all.Entries)))
	start := time.Now()
	existing, err = c.cfg.Store.Append(ctx, all, seal)
	c.metrics.commitSeconds.Observe(time.Since(start).Seconds())
	if err != nil {
		return storage.Batch{}, err
	}
	if len(existing.Records) != len(all.Records) || len(existing.Entries) != len(all.Entries) {
		return storage.Batch{}, fmt.Errorf("%w: the store answered %d of %d records and %d of %d entries", storage.ErrUnknown,
			len(existing.Records), len(all.Records), len(existing.Entries), len(all.Entries))
	}
	return existing, nil
}

// sealer returns the seal of batch, which may be asked for again with less.
func (c *committer) sealer(batch []*waiter) storage.Seal {
	return func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		signer := c.cfg.signer.Load()
		sealed, leaves, err := first(batch, fresh, signer.KeyID(), c.leaves[:0])
		if err != nil || len(leaves) == 0 {
			return storage.Batch{}, receipt.SignedHead{}, err
		}
		c.leaves = leaves
		head, sigs := signer.Seal(tip, c.cfg.Now(), leaves)
		for i, r := range sealed.Records {
			r.Receipt.Sig = sigs[i]
		}
		for i, e := range sealed.Entries {
			e.Inclusion = receipt.Inclusion{Sig: sigs[len(sealed.Records)+i], KeyID: signer.KeyID()}
		}
		return sealed, head, nil
	}
}

// first returns what of fresh is to be stored, which leaves out waiters that are
// whole and of which not all records are fresh, and appends its leaves under a key.
func first(batch []*waiter, fresh storage.Batch, keyID string, leaves [][32]byte) (storage.Batch, [][32]byte, error) {
	sealed, records := storage.Batch{Records: fresh.Records[:0:0]}, fresh.Records
	for _, w := range batch {
		mark, n := len(leaves), 0
		for i := range w.places {
			if n < len(records) && records[n] == w.places[i].record {
				leaves = append(leaves, w.places[i].under(keyID))
				n++
			}
		}
		if w.whole && n < len(w.places) {
			leaves = leaves[:mark]
		} else {
			sealed.Records = append(sealed.Records, records[:n]...)
		}
		records = records[n:]
	}
	for _, w := range batch {
		for _, e := range w.entries {
			if n := len(sealed.Entries); n < len(fresh.Entries) && fresh.Entries[n] == e {
				leaves = append(leaves, receipt.EntryLeaf(e.Body))
				sealed.Entries = fresh.Entries[:n+1]
			}
		}
	}
	if len(records) > 0 || len(sealed.Entries) < len(fresh.Entries) {
		return storage.Batch{}, nil, errors.New("sealing what is not of the batch or not in its order")
	}
	return sealed, leaves, nil
}
