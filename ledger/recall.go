package ledger

import (
	"context"
	"errors"
	"fmt"

	"writ/engine"
	"writ/storage"
)

// Recall returns the earlier decision of in under an approval, which may be empty, as a
// commit would, or no Record if there is none. It makes nothing final. A caller whose
// evaluation is expensive or can fail calls Recall first, so that a replay does not depend
// on it. The caller still has to commit: only the commit decides which decision was first.
func (l *Ledger) Recall(ctx context.Context, org string, in *engine.Intent, approvalID string) (Outcome, error) {
	earlier, err := l.cfg.Store.Decided(ctx, org, in.IntentID, approvalID)
	if errors.Is(err, storage.ErrNotFound) {
		return Outcome{}, nil
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("looking for an earlier decision: %w", err)
	}
	if err := repeats(earlier, IntentDigest(in)); err != nil {
		l.metrics.conflicts.Inc()
		return Outcome{}, err
	}
	l.metrics.replays.Inc()
	return Outcome{Record: earlier, Replayed: true}, nil
}
