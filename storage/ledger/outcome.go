package ledger

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// checkReplay returns nil if an intent with this digest is a replay of earlier, the
// stored decision of the same intent id.
func checkReplay(earlier *storage.Record, digest string) error {
	switch {
	case earlier.Removed():
		return ErrIntentExpired
	case earlier.IntentDigest != digest:
		return ErrIntentConflict
	}
	return nil
}

// Recall returns the earlier decision of in under approvalID, which may be empty. If
// there is no earlier decision, the Outcome has no Record. Recall stores nothing. A
// caller whose evaluation is expensive or can fail calls Recall first, so that a replay
// does not depend on the evaluation. The caller must still commit: only the commit
// decides which decision was first.
func (l *Ledger) Recall(ctx context.Context, org string, in *engine.Intent, approvalID string) (Outcome, error) {
	earlier, err := l.cfg.Store.Decided(ctx, org, in.IntentID, approvalID)
	if errors.Is(err, storage.ErrNotFound) {
		return Outcome{}, nil
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("looking for an earlier decision: %w", err)
	}
	if err := checkReplay(earlier, IntentDigest(in)); err != nil {
		l.metrics.conflicts.Inc()
		return Outcome{}, err
	}
	l.metrics.replays.Inc()
	return Outcome{Record: earlier, Replayed: true}, nil
}

// answer gives the waiters of a committed batch their outcomes and wakes them.
func (c *committer) answer(ctx context.Context, batch []*waiter) {
	var t tally
	for _, w := range batch {
		if w.raced() {
			w.err = ErrRaced
			continue
		}
		for i := range w.places {
			p, earlier := &w.places[i], w.existing.Records[i]
			if earlier == nil && !w.stored(i) {
				w.outs[i] = Outcome{Err: ErrRaced}
				continue
			}
			w.outs[i] = t.outcome(p.record, earlier)
			p.used = earlier == nil && p.record.Metered()
		}
	}
	c.quotas.settle(batch...)
	c.metrics.answered(t.fresh, t.replays, t.conflicts)
	if c.refused > 0 {
		c.cfg.Log.InfoContext(ctx, "decisions are committed again", "refused", c.refused)
		c.refused = 0
	}
	wake(batch)
}

type tally struct {
	fresh              [engine.Deny + 1]int
	replays, conflicts int
}

// outcome returns the outcome of committing r. Earlier is the decision that the store had
// already, or nil.
func (t *tally) outcome(r, earlier *storage.Record) Outcome {
	if earlier == nil {
		t.fresh[r.Decision]++
		return Outcome{Record: r}
	}
	if err := checkReplay(earlier, r.IntentDigest); err != nil {
		t.conflicts++
		return Outcome{Err: err}
	}
	t.replays++
	return Outcome{Record: earlier, Replayed: true}
}

// refuse wakes the waiters of a batch with the error of its commit. It logs the first of
// a series of failures, unless the store has logged it.
func (c *committer) refuse(ctx context.Context, batch []*waiter, err error) {
	c.metrics.commitFailures.Inc()
	if c.refused == 0 && !errors.Is(err, storage.ErrUnavailable) {
		c.cfg.Log.ErrorContext(ctx, "decisions cannot be committed and are refused", "error", err)
	}
	for _, w := range batch {
		c.refused += w.size()
		w.err = err
	}
	wake(batch)
}

func wake(batch []*waiter) {
	for _, w := range batch {
		w.wake()
	}
}
