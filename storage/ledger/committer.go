package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"writ/storage"
	"writ/storage/receipt"
)

// committer writes one batch after the other. Its fields belong to the
// goroutine of run.
type committer struct {
	cfg     *Config
	quotas  *quotas
	metrics *metrics

	// unknown is a batch that may be stored or not, though its callers were refused.
	// Its reservations are held until that is known.
	unknown []*waiter

	refused int // intents refused for the failure that lasts; 0: commits succeed
	leaves  [][32]byte
}

// maxCommit bounds a batch, of decisions or of changes, so that the first of a
// backlog doesn't wait for the last.
const maxCommit = 1024

// commitRest is the longest rest between two commits. With MongoDB, a commit takes several
// times as long.
const commitRest = time.Millisecond

// run commits the waiters of q until q is closed and empty. After ctx ends it refuses
// them.
//
// After a commit of several it rests as long as that took, so that more of those who come
// meanwhile share a signature, a write and a wait for the disk: at half of the load that it
// can bear a request takes up to a quarter less of the processor. Who comes alone does not wait.
func (c *committer) run(ctx context.Context, q *queue) {
	var batch []*waiter
	for {
		batch = q.take(batch, maxCommit)
		if len(batch) == 0 {
			return
		}
		began := time.Now()
		c.metrics.queueWait.Observe(began.Sub(batch[0].queued).Seconds())
		for rest := batch; len(rest) > 0; {
			n := separable(rest)
			c.serve(ctx, rest[:n])
			rest = rest[n:]
		}
		if len(batch) > 1 {
			time.Sleep(min(time.Since(began), commitRest))
		}
		clear(batch)
	}
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
			adopt(batch, existing)
		} else if !errors.Is(err, storage.ErrUnknown) {
			err = fmt.Errorf("%w: %w", storage.ErrUnknown, err) // of the first try
		}
	}
	switch {
	case err == nil:
		c.quotas.settle(batch, &existing)
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
	existing, err := c.commit(ctx, c.unknown,
		func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			return storage.Batch{}, receipt.SignedHead{}, nil
		})
	if err != nil {
		return fmt.Errorf("recovering from a failed commit: %w", err)
	}
	var stands storage.Batch
	rest := existing
	for _, w := range c.unknown {
		stands, rest = w.cut(rest)
		for i := range w.places {
			if r := w.places[i].record; stands.Records[i] != nil && stands.Records[i].DecisionID == r.DecisionID {
				stands.Records[i] = nil // it was the first
			} else {
				stands.Records[i] = r
			}
		}
		for i, e := range w.entries {
			if stands.Entries[i] != nil && bytes.Equal(stands.Entries[i].Body, e.Body) {
				stands.Entries[i] = nil
			} else {
				stands.Entries[i] = e
			}
		}
	}
	c.quotas.settle(c.unknown, &existing)
	c.unknown = nil
	return nil
}

// adopt makes batch's own what an earlier append of it has stored: a row of one's
// own decision id is one's own, and so is the verdict with its body.
func adopt(batch []*waiter, existing storage.Batch) {
	var own storage.Batch
	for _, w := range batch {
		own, existing = w.cut(existing)
		for i := range w.places {
			p := &w.places[i]
			if r := own.Records[i]; r != nil && r.DecisionID == p.record.DecisionID {
				p.record, own.Records[i] = r, nil
			}
			if p.verdict == nil {
				continue
			}
			n := slices.Index(w.entries, p.verdict)
			if e := own.Entries[n]; e != nil && bytes.Equal(e.Body, p.verdict.Body) {
				own.Entries[n] = nil
			}
		}
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
	var own storage.Batch
	rest := all
	for _, w := range batch {
		if own, rest = w.cut(rest); w.raced(own) {
			continue
		}
		for i := range w.places {
			p := &w.places[i]
			if own.Records[i] == nil && p.record.Receipt.Sig == "" && !w.beaten(p, own.Entries) {
				return all, fmt.Errorf("%w: the store took a record as new that it had not sealed", storage.ErrUnknown)
			}
		}
	}
	return all, nil
}

// commit has the store append batch, with a panic of the store's as an error.
func (c *committer) commit(
	ctx context.Context, batch []*waiter, seal storage.Seal,
) (existing storage.Batch, err error) {
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
		return storage.Batch{},
			fmt.Errorf("%w: the store answered %d of %d records and %d of %d entries", storage.ErrUnknown,
				len(existing.Records), len(all.Records), len(existing.Entries), len(all.Entries))
	}
	return existing, nil
}
