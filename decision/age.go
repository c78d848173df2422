package decision

import (
	"context"
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage/ledger"
)

// AgeError means that an intent was not decided before, and that its issued_at is too far from the
// time of the decision.
type AgeError struct{ Most time.Duration }

// Error implements error.
func (e *AgeError) Error() string {
	return fmt.Sprintf("issued_at is further than %v from the time of the decision", e.Most)
}

// aged returns the earlier decision of an intent whose issued_at is too far away. If the intent was
// not decided earlier, the error is an [*AgeError]. An intent that is more than twice too old is
// refused without a look: its decision need not be remembered. An approval shows that the intent
// was decided in time.
func (b *batch) aged(ctx context.Context, it *item) (earlier ledger.Outcome, err error) {
	most := b.cfg.IntentAge
	if most == 0 || it.approval != nil {
		return earlier, nil
	}
	age := age(it.entry.Intent, it.entry.Reservation.Time())
	if -most <= age && age <= most {
		return earlier, nil
	}
	if age/2 <= most {
		if earlier, err = b.recall(ctx, it); err != nil || earlier.Record != nil {
			return earlier, err
		}
	}
	return earlier, &AgeError{most}
}

// age returns how long before at the intent was issued.
func age(in *engine.Intent, at time.Time) time.Duration { return at.Sub(in.Issued()) }
