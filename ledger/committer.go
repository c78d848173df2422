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

	refused int // intents refused for the failure that lasts; 0: commits succeed
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
		for rest := batch; len(rest) > 0; {
			n := apart(rest)
			c.serve(ctx, rest[:n])
			rest = rest[n:]
		}
		clear(batch)
	}
}

// apart returns how many of batch can be committed together. Records that are
// stored all or none may be left out, so that nobody else in their batch may be
// answered with one of them: whoever decides the same intent begins another.
func apart(batch []*waiter) int {
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
	err := c.becomeSure(ctx)
	batch = wakeFlushes(batch, err)
	if len(batch) == 0 {
		return
	}
	if err != nil {
		c.meters.settle(batch, nil)
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
	c.meters.settle(batch, existing)
	c.answer(ctx, batch, existing)
}

// wakeFlushes wakes the waiters that commit nothing with err and returns the
// others.
func wakeFlushes(batch []*waiter, err error) []*waiter {
	commits := batch[:0]
	for _, w := range batch {
		if len(w.places) > 0 {
			commits = append(commits, w)
			continue
		}
		w.err = err
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
	records := make([]*storage.Record, 0, len(batch))
	for _, w := range batch {
		for i := range w.places {
			records = append(records, w.places[i].record)
		}
	}
	c.sealed = c.sealed[:0]
	c.metrics.batchSize.Observe(float64(len(records)))
	start := time.Now()
	existing, err = c.cfg.Store.Commit(ctx, records, c.sealer(batch))
	c.metrics.commitSeconds.Observe(time.Since(start).Seconds())
	if err != nil {
		return nil, err
	}
	if len(existing) != len(records) {
		return nil, fmt.Errorf("the store answered %d of %d records", len(existing), len(records))
	}
	return existing, checkCommit(batch, existing)
}

// checkCommit holds the store to its contract: nothing unsigned is answered.
func checkCommit(batch []*waiter, existing []*storage.Record) error {
	for _, w := range batch {
		if !w.raced(existing) {
			for i := range w.places {
				if existing[i] == nil && w.places[i].record.Receipt.Sig == "" {
					return errors.New("the store took a record as new that it had not sealed")
				}
			}
		}
		existing = existing[len(w.places):]
	}
	return nil
}

// sealer returns the seal of batch, which follows c.tip however often the store
// asks for it.
func (c *committer) sealer(batch []*waiter) storage.Seal {
	return func(fresh []*storage.Record) ([]*storage.Record, receipt.SignedHead, error) {
		sealed, leaves, err := first(batch, fresh, c.leaves[:0])
		if err != nil || len(sealed) == 0 {
			return nil, receipt.SignedHead{}, err
		}
		c.leaves = leaves
		head, sigs := c.cfg.Signer.Seal(c.tip, c.cfg.Now(), leaves)
		for i, r := range sealed {
			r.Receipt.Sig = sigs[i]
		}
		c.sealed = append(c.sealed, head.Head)
		return sealed, head, nil
	}
}

// first returns those of fresh that are to be stored, which leaves out waiters
// that are whole and of which not all are fresh, and appends their leaves.
func first(batch []*waiter, fresh []*storage.Record, leaves [][32]byte) ([]*storage.Record, [][32]byte, error) {
	sealed := fresh[:0:0]
	for _, w := range batch {
		mark, n := len(leaves), 0
		for i := range w.places {
			if n < len(fresh) && fresh[n] == w.places[i].record {
				leaves = append(leaves, w.places[i].leaf)
				n++
			}
		}
		if w.whole && n < len(w.places) {
			leaves = leaves[:mark]
		} else {
			sealed = append(sealed, fresh[:n]...)
		}
		fresh = fresh[n:]
	}
	if len(fresh) > 0 {
		return nil, nil, errors.New("sealing a record that is not of the batch or not in its order")
	}
	return sealed, leaves, nil
}
