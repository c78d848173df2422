package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"writ/ledger/receipt"
	"writ/storage"
)

// maxBatch bounds a batch, so that the first of a backlog doesn't wait for the
// last.
const maxBatch = 1024

// committer writes one batch after the other. Its fields belong to the
// goroutine of run.
type committer struct {
	cfg     *Config
	meters  *meters
	metrics *metrics

	// tip is the end of the chain as the store has it, unless unsure is set:
	// then it may be one of sealed that follows tip.
	tip      receipt.Chain
	sealed   []receipt.Head // on tip
	unsure   bool
	doubtful []*meter // to reload before unsure ends

	refused int // waiters told of the failure that lasts; 0: commits succeed
	leaves  [][32]byte
}

// run commits what q has until q is closed and empty. Once ctx ends it refuses
// instead.
func (c *committer) run(ctx context.Context, q *queue) {
	var batch []*waiter
	for {
		batch = q.take(batch, maxBatch)
		if len(batch) == 0 {
			return
		}
		c.metrics.queueWait.Observe(time.Since(batch[0].queued).Seconds())
		c.serve(ctx, batch)
		clear(batch)
	}
}

// serve wakes all of batch.
func (c *committer) serve(ctx context.Context, batch []*waiter) {
	err := c.becomeSure(ctx)
	batch = wakeFlushes(batch, err)
	if len(batch) == 0 {
		return
	}
	if err != nil {
		c.meters.settle(batch, func(int) bool { return false })
		c.refuse(ctx, batch, err)
		return
	}
	existing, err := c.commit(ctx, batch)
	if err != nil {
		c.unsure = true
		c.doubtful = c.meters.doubt(c.doubtful, batch)
		c.refuse(ctx, batch, err)
		return
	}
	if n := len(c.sealed); n > 0 {
		c.tip = c.tip.Next(c.sealed[n-1])
	}
	c.meters.settle(batch, func(i int) bool { return existing[i] == nil })
	c.answer(ctx, batch, existing)
}

// wakeFlushes wakes the waiters that commit nothing with err and returns the
// others.
func wakeFlushes(batch []*waiter, err error) []*waiter {
	commits := batch[:0]
	for _, w := range batch {
		if w.record != nil {
			commits = append(commits, w)
			continue
		}
		w.decide(Outcome{}, err)
		w.wake()
	}
	return commits
}

// commit has the store write batch, with a panic of the store's as an error.
func (c *committer) commit(ctx context.Context, batch []*waiter) (existing []*storage.Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	records := make([]*storage.Record, len(batch))
	for i, w := range batch {
		records[i] = w.record
	}
	c.sealed = c.sealed[:0]
	c.metrics.batchSize.Observe(float64(len(batch)))
	start := time.Now()
	existing, err = c.cfg.Store.Commit(ctx, records, c.sealer(batch))
	c.metrics.commitSeconds.Observe(time.Since(start).Seconds())
	if err != nil {
		return nil, err
	}
	return existing, checkCommit(records, existing)
}

// checkCommit holds the store to its contract: nothing unsigned is answered.
func checkCommit(records, existing []*storage.Record) error {
	if len(existing) != len(records) {
		return fmt.Errorf("the store answered %d of %d records", len(existing), len(records))
	}
	for i, r := range records {
		if existing[i] == nil && r.Receipt.Sig == "" {
			return errors.New("the store took a record as new that it had not sealed")
		}
	}
	return nil
}

// sealer returns the seal of batch, which follows c.tip however often the store
// asks for it.
func (c *committer) sealer(batch []*waiter) storage.Seal {
	return func(fresh []*storage.Record) (receipt.SignedHead, error) {
		leaves, rest := c.leaves[:0], batch
		for _, r := range fresh {
			for len(rest) > 0 && rest[0].record != r {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return receipt.SignedHead{}, errors.New("sealing a record that is not of the batch or not in its order")
			}
			leaves = append(leaves, rest[0].leaf)
			rest = rest[1:]
		}
		c.leaves = leaves
		head, sigs := c.cfg.Signer.Seal(c.tip, c.cfg.Now(), leaves)
		for i, r := range fresh {
			r.Receipt.Sig = sigs[i]
		}
		c.sealed = append(c.sealed, head.Head)
		return head, nil
	}
}
