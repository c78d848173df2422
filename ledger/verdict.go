package ledger

import (
	"context"
	"errors"

	"writ/engine"
	"writ/storage"
)

// repeats returns nil where an intent of the digest is answered by earlier, the
// decision that stands under its id, or why it is not.
func repeats(earlier *storage.Record, digest string) error {
	switch {
	case earlier.Removed():
		return ErrIntentExpired
	case earlier.IntentDigest != digest:
		return ErrIntentConflict
	}
	return nil
}

// answer tells the waiters of a committed batch what the store has.
func (c *committer) answer(ctx context.Context, batch []*waiter, existing []*storage.Record) {
	var fresh [engine.Deny + 1]int
	var replays, conflicts int
	for i, w := range batch {
		earlier := existing[i]
		if earlier == nil {
			fresh[w.record.Decision]++
			w.decide(Outcome{Record: w.record}, nil)
		} else if err := repeats(earlier, w.record.IntentDigest); err != nil {
			conflicts++
			w.decide(Outcome{}, err)
		} else {
			replays++
			w.decide(Outcome{Record: earlier, Replayed: true}, nil)
		}
	}
	c.metrics.answered(fresh, replays, conflicts)
	if c.refused > 0 {
		c.cfg.Log.InfoContext(ctx, "decisions are committed again", "refused", c.refused)
		c.refused = 0
	}
	wake(batch)
}

// refuse tells the waiters of a batch that err kept it from being committed. It
// logs the first of a series of failures, unless the store has done so.
func (c *committer) refuse(ctx context.Context, batch []*waiter, err error) {
	c.metrics.commitFailures.Inc()
	if c.refused == 0 && !errors.Is(err, storage.ErrUnavailable) {
		c.cfg.Log.ErrorContext(ctx, "decisions cannot be committed and are refused", "error", err)
	}
	c.refused += len(batch)
	for _, w := range batch {
		w.decide(Outcome{}, err)
	}
	wake(batch)
}

func wake(batch []*waiter) {
	for _, w := range batch {
		w.wake()
	}
}
