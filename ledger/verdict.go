package ledger

import (
	"context"
	"errors"

	"writ/engine"
	"writ/storage"
)

// answer tells the waiters of a committed batch what the store has.
func (c *committer) answer(ctx context.Context, batch []*waiter, existing []*storage.Record) {
	var fresh [engine.Deny + 1]int
	var replays, conflicts int
	for i, w := range batch {
		switch earlier := existing[i]; {
		case earlier == nil:
			fresh[w.record.Decision]++
			w.decide(Outcome{Record: w.record}, nil)
		case earlier.Removed():
			conflicts++
			w.decide(Outcome{}, ErrIntentExpired)
		case earlier.IntentDigest != w.record.IntentDigest:
			conflicts++
			w.decide(Outcome{}, ErrIntentConflict)
		default:
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
