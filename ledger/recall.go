package ledger

import (
	"context"
	"errors"
	"fmt"

	"writ/engine"
	"writ/storage"
)

// Recall returns what [Ledger.Commit] would if in was decided before, and false
// where it was not, without making anything final. A caller whose evaluation is
// dear or can fail asks first, so that a replay depends on neither; it commits
// all the same, which alone decides who was first.
func (l *Ledger) Recall(ctx context.Context, org string, in *engine.Intent) (Outcome, bool, error) {
	earlier, err := l.cfg.Store.Decided(ctx, org, in.IntentID)
	if errors.Is(err, storage.ErrNotFound) {
		return Outcome{}, false, nil
	}
	if err != nil {
		return Outcome{}, false, fmt.Errorf("looking for an earlier decision: %w", err)
	}
	if err := repeats(earlier, IntentDigest(in)); err != nil {
		l.metrics.conflicts.Inc()
		return Outcome{}, false, err
	}
	l.metrics.replays.Inc()
	return Outcome{Record: earlier, Replayed: true}, true, nil
}
