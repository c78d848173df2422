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

// SetIntentAge sets the age for all replicas, and reports whether it was another: see [storage.IntentAge.Set].
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
		before := age
		if age.Set(most, now); age == before {
			return nil
		}
		changed = age.MostMS != before.MostMS
		return storage.IntentAges.Put(tx, "", &age)
	})
	return age, changed, err
}
