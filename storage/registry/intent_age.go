package registry

import (
	"context"
	"errors"
	"time"

	"writ.example/writ/storage"
)

// IntentAge returns the age of the deployment. It is nil if none was ever set.
func (r *Registry) IntentAge(ctx context.Context) (*storage.IntentAge, error) {
	age, err := get(ctx, r, storage.IntentAges, "", "")
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	return age, err
}

// SetIntentAge sets the age for all replicas, and reports whether it was another. most is 0 for any age. If
// the age is raised, decisions of intents that were more than twice the earlier age old may be forgotten. So
// these intents stay refused.
func (r *Registry) SetIntentAge(
	ctx context.Context, most time.Duration, now time.Time,
) (age storage.IntentAge, changed bool, err error) {
	err = r.update(ctx, "", func(tx storage.Tx) error {
		age, changed = storage.IntentAge{}, false
		stored, err := storage.IntentAges.Get(tx, "", "")
		switch {
		case err == nil:
			age = *stored
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		earlier := age.Most()
		if earlier == most {
			return nil
		}
		if earlier > 0 && (most == 0 || most > earlier) {
			if forgotten := now.Add(storage.MaxSkew - 2*earlier); forgotten.After(age.Before) {
				age.Before = forgotten.UTC()
			}
		}
		age.MostMS, changed = most.Milliseconds(), true
		return storage.IntentAges.Put(tx, "", &age)
	})
	return age, changed, err
}
