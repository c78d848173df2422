package ledger

import (
	"context"
	"errors"
	"fmt"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

// errUndecided is how recall keeps the store from taking its question for a
// decision.
var errUndecided = errors.New("the intent is not decided")

// Recall returns what [Ledger.Commit] would if in was decided before, and false
// where it was not, without making anything final. A caller whose evaluation is
// dear or can fail asks first, so that a replay depends on neither; it commits
// all the same, which alone decides who was first. t is left as it is.
func (l *Ledger) Recall(ctx context.Context, t *Turn, in *engine.Intent) (Outcome, bool, error) {
	if t.meter == nil {
		return Outcome{}, false, errors.New("recalling with a turn that has ended")
	}
	// A batch whose only record gets no seal is no decision: the contract of the
	// store has it that nothing is stored then.
	question := &storage.Record{
		OrganizationID: t.org, IntentID: in.IntentID, DecisionID: t.id.String(), DecidedAt: t.at,
	}
	existing, err := l.cfg.Store.Commit(ctx, []*storage.Record{question}, func([]*storage.Record) (receipt.SignedHead, error) {
		return receipt.SignedHead{}, errUndecided
	})
	switch {
	case errors.Is(err, errUndecided):
		return Outcome{}, false, nil
	case err != nil:
		return Outcome{}, false, fmt.Errorf("looking for an earlier decision: %w", err)
	case len(existing) != 1 || existing[0] == nil:
		return Outcome{}, false, errors.New("looking for an earlier decision: the store took a question for a decision")
	case existing[0].Removed():
		l.metrics.conflicts.Inc()
		return Outcome{}, false, ErrIntentExpired
	case existing[0].IntentDigest != IntentDigest(in):
		l.metrics.conflicts.Inc()
		return Outcome{}, false, ErrIntentConflict
	}
	l.metrics.replays.Inc()
	return Outcome{Record: existing[0], Replayed: true}, true, nil
}
