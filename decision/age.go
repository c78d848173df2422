package decision

import (
	"context"
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// AgeError means that an intent was not decided before, and that its issued_at is too far from the
// time of the decision.
type AgeError struct{ age storage.IntentAge }

// Error implements error.
func (e *AgeError) Error() string { return "issued_at is out of range: want " + e.Want() }

// Want says which times are right.
func (e *AgeError) Want() string {
	after := e.age.Before.Format(time.RFC3339)
	switch most := e.age.Most(); {
	case most == 0:
		return "a time after " + after
	case e.age.Before.IsZero():
		return fmt.Sprintf("a time within %v of now", most)
	default:
		return fmt.Sprintf("a time within %v of now and after %s", most, after)
	}
}

// followEvery is how often a replica reads the age that another may have set.
const followEvery = time.Minute

// setAge sets the age of the deployment to the configured one.
func (s *Service) setAge(ctx context.Context) error {
	age, changed, err := s.Documents.SetIntentAge(ctx, s.cfg.IntentAge, s.cfg.Now())
	if err != nil {
		return fmt.Errorf("setting the age of intents: %w", err)
	}
	if changed {
		s.cfg.Log.InfoContext(ctx, "the age of intents was set for all replicas",
			"age", age.Most(), "issued_after", age.Before)
	}
	s.age.Store(&age)
	return nil
}

// followAge reads the age of the deployment until ctx ends. If it can't be read, the one before stays. Nothing
// is decided then anyway.
func (s *Service) followAge(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.readAge(ctx)
		}
	}
}

func (s *Service) readAge(ctx context.Context) {
	if age, err := s.Documents.IntentAge(ctx); err == nil && age != nil {
		s.age.Store(age)
	}
}

// forget forgets intents of org's removed records, at most max, if the store can. All replicas refuse these intents.
func (s *Service) forget(ctx context.Context, org string, max int) (int, error) {
	store, ok := s.cfg.Store.(storage.Forgetter)
	if !ok {
		return 0, nil
	}
	age, err := s.Documents.IntentAge(ctx)
	if age == nil || err != nil {
		return 0, err
	}
	from, before := age.Forgettable(s.cfg.Now())
	if !from.Before(before) {
		return 0, nil
	}
	return store.Forget(ctx, org, from, before, max)
}

// aged returns the earlier decision of an intent whose issued_at is too far away. If the intent was
// not decided earlier, the error is an [*AgeError]. An intent that is more than twice too old is
// refused without a look: its decision need not be remembered. An approval shows that the intent
// was decided in time.
func (b *batch) aged(ctx context.Context, it *item) (earlier ledger.Outcome, err error) {
	limit := b.age.Load()
	most := limit.Most()
	if it.approval != nil || most == 0 && limit.Before.IsZero() {
		return earlier, nil
	}
	age := age(it.entry.Intent, it.entry.Reservation.Time())
	refused := it.entry.Intent.Issued().Before(limit.Before)
	if !refused && (most == 0 || -most <= age && age <= most) {
		return earlier, nil
	}
	if !refused && age/2 <= most {
		if earlier, err = b.recall(ctx, it); err != nil || earlier.Record != nil {
			return earlier, err
		}
	}
	return earlier, &AgeError{*limit}
}

// age returns how long before at the intent was issued.
func age(in *engine.Intent, at time.Time) time.Duration { return at.Sub(in.Issued()) }
