package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// committer writes one batch after the other. Only the goroutine of run uses its fields.
type committer struct {
	cfg     *Config
	quotas  *quotas
	metrics *metrics

	// unresolved are the commits of a batch of unknown outcome, usually nil. Their callers
	// were refused. Their reservations are held until the outcome is found.
	unresolved *waiter

	unsigned bool // the last batch had no signature

	refused int // intents refused since commits began to fail; 0 while commits succeed
	leaves  [][32]byte
}

// maxCommit is the largest number of decisions or changes in a batch. A decision waits for the
// batch under way and for its own. So maxCommit bounds how long the backlog of one organization
// delays another: with 1,024 the p99 of a neighbour was higher, and the rate was the same
// (bench/results/hostile-batches.txt).
const maxCommit = 256

// commitRest is the longest pause between two commits. A commit to MongoDB takes several
// times as long.
const commitRest = time.Millisecond

// run commits the waiters of q until q is closed and empty. After ctx ends it refuses
// them.
//
// After a commit of several waiters it pauses for as long as the commit took, and at least
// for the least rest of its Config. Requests
// that arrive during the pause share a signature, a write and a wait for the disk. At
// half of the highest load this saves up to a quarter of the CPU time of a request. After
// a commit of one waiter it does not pause, and neither while a full batch waits.
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
		if len(batch) > 1 && q.len() < maxCommit {
			time.Sleep(min(max(time.Since(began), c.cfg.LeastRest), commitRest))
		}
		clear(batch)
	}
}

// serve commits batch and wakes all its waiters.
func (c *committer) serve(ctx context.Context, batch []*waiter) {
	err := c.recoverUnknown(ctx)
	batch = c.wakeFlushes(batch, err)
	if len(batch) == 0 {
		return
	}
	if err != nil {
		c.quotas.settle(batch...)
		c.refuse(ctx, batch, err)
		return
	}
	err = c.try(ctx, batch)
	doubt := errors.Is(err, storage.ErrUnknown)
	if doubt { // a second append of the batch tells which of its records are stored
		if err = c.try(ctx, batch); err == nil {
			adopt(batch)
		} else if !errors.Is(err, storage.ErrUnknown) {
			err = fmt.Errorf("%w: %w", storage.ErrUnknown, err) // the error of the first try
		}
	}
	switch {
	case err == nil:
		c.answer(ctx, batch)
		return
	case doubt:
		c.unresolved = merged(batch)
	default:
		c.quotas.settle(batch...)
	}
	c.refuse(ctx, batch, err)
}

// merged copies the commits of batch into one waiter. The waiters themselves go back to
// their callers.
func merged(batch []*waiter) *waiter {
	all := new(waiter)
	for _, w := range batch {
		all.places = append(all.places, w.places...)
		all.entries = append(all.entries, w.entries...)
	}
	return all
}

// recoverUnknown finds which of the unresolved commits are stored. It appends them again
// with a seal that signs nothing, so that an intent whose caller was refused is not decided
// later. It returns nil if nothing is unresolved, and ErrClosed after ctx has ended.
func (c *committer) recoverUnknown(ctx context.Context) error {
	if ctx.Err() != nil {
		return ErrClosed
	}
	if c.unresolved == nil {
		return nil
	}
	err := c.commit(ctx, []*waiter{c.unresolved},
		func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			return storage.Batch{}, receipt.SignedHead{}, nil
		})
	if err != nil {
		return fmt.Errorf("recovering from a failed commit: %w", err)
	}
	for i, stored := range c.unresolved.existing.Records {
		p := &c.unresolved.places[i]
		p.used = stored != nil && stored.DecisionID == p.record.DecisionID && stored.Metered()
	}
	c.quotas.settle(c.unresolved)
	c.unresolved = nil
	return nil
}

// adopt corrects the result of a repeated append. Rows and verdicts that an earlier
// append of the same batch has stored count as new. Such a row has the decision id of the
// waiter's record. Such a verdict has the same body as the waiter's verdict.
func adopt(batch []*waiter) {
	for _, w := range batch {
		for i := range w.places {
			p := &w.places[i]
			if r := w.existing.Records[i]; r != nil && r.DecisionID == p.record.DecisionID {
				p.record, w.existing.Records[i] = r, nil
			}
			if p.verdict == nil {
				continue
			}
			n := slices.Index(w.entries, p.verdict)
			if e := w.existing.Entries[n]; e != nil && bytes.Equal(e.Body, p.verdict.Body) {
				w.existing.Entries[n] = nil
			}
		}
	}
}

// wakeFlushes wakes the waiters that commit nothing, with err as their result, and returns
// the others. If the last batch had no signature, it tries the signer first, so that a server
// which gets no more requests hears when the signer signs again.
func (c *committer) wakeFlushes(batch []*waiter, err error) []*waiter {
	commits := batch[:0]
	for _, w := range batch {
		if len(w.places)+len(w.entries) > 0 {
			commits = append(commits, w)
			continue
		}
		if c.unsigned && err == nil {
			err = c.cfg.signer.Load().Try()
			c.unsigned = err != nil
		}
		w.err = err
		w.wake()
	}
	return commits
}

// try makes the store append batch. It returns an error if the store reports an unsigned
// record as new.
func (c *committer) try(ctx context.Context, batch []*waiter) error {
	if err := c.commit(ctx, batch, c.sealer(batch)); err != nil {
		return err
	}
	for _, w := range batch {
		for i := range w.places {
			if w.places[i].record.Receipt.Sig == "" && !w.raced() && w.stored(i) {
				return fmt.Errorf("%w: the store took a record as new that it had not sealed", storage.ErrUnknown)
			}
		}
	}
	return nil
}

// commit makes the store append batch, and sets the field existing of each waiter. It
// returns a panic of the store as an error.
func (c *committer) commit(ctx context.Context, batch []*waiter, seal storage.Seal) (err error) {
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
	existing, err := c.cfg.Store.Append(ctx, all, seal)
	c.metrics.commitSeconds.Observe(time.Since(start).Seconds())
	if err != nil {
		return err
	}
	if len(existing.Records) != len(all.Records) || len(existing.Entries) != len(all.Entries) {
		return fmt.Errorf("%w: the store answered %d of %d records and %d of %d entries", storage.ErrUnknown,
			len(existing.Records), len(all.Records), len(existing.Entries), len(all.Entries))
	}
	for _, w := range batch {
		n, m := len(w.places), len(w.entries)
		w.existing = storage.Batch{Records: existing.Records[:n], Entries: existing.Entries[:m]}
		existing = storage.Batch{Records: existing.Records[n:], Entries: existing.Entries[m:]}
	}
	return nil
}
