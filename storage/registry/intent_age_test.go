package registry_test

import (
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

var intentAgeTests = []test{
	{"the age of intents is kept, and raising it counts from then", func(w *world) {
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		age, err := w.IntentAge(w.ctx)
		if w.Must("IntentAge", err); age != nil {
			w.Errorf("IntentAge = %v, want none", age)
		}
		before := func(ago time.Duration) time.Time { return now.Add(storage.MaxSkew - ago) }
		for _, step := range []struct {
			most    time.Duration
			changed bool
			before  time.Time
			widest  time.Duration
		}{
			{0, false, time.Time{}, 0},
			{24 * time.Hour, true, time.Time{}, 24 * time.Hour},
			{24 * time.Hour, false, time.Time{}, 24 * time.Hour},
			{2 * time.Hour, true, time.Time{}, 24 * time.Hour},           // lowered
			{6 * time.Hour, true, before(4 * time.Hour), 24 * time.Hour}, // raised
			{3 * time.Hour, true, before(4 * time.Hour), 24 * time.Hour},
			{12 * time.Hour, true, before(4 * time.Hour), 24 * time.Hour}, // of the two times, the later
			{time.Hour, true, before(4 * time.Hour), 24 * time.Hour},
			{0, true, before(2 * time.Hour), 0}, // any age is the greatest
			{0, false, before(2 * time.Hour), 0},
			{time.Hour, true, before(2 * time.Hour), 24 * time.Hour},
			{30 * time.Hour, true, before(2 * time.Hour), 30 * time.Hour},
		} {
			age, changed, err := registry.New(w.docs).SetIntentAge(w.ctx, step.most, now)
			if err != nil || changed != step.changed || age.Most() != step.most || !age.Before.Equal(step.before) {
				w.Errorf("SetIntentAge(%v) = %+v, %v, %v, want %+v", step.most, age, changed, err, step)
			}
			from, to := age.Forgettable(now) // widest is 0 where nothing is
			if want := now.Add(-3*step.widest - storage.AgeSettles); step.widest == 0 && !to.IsZero() ||
				step.widest > 0 && (!from.Equal(now.Add(storage.AgeSettles)) || !to.Equal(want)) {
				w.Errorf("after SetIntentAge(%v) what was decided from %v to %v may be forgotten, want to %v", step.most, from, to, want)
			}
			stored, err := w.IntentAge(w.ctx)
			if w.Must("IntentAge", err); stored == nil && step.most > 0 || stored != nil && *stored != age {
				w.Errorf("IntentAge = %+v, want %+v", stored, age)
			}
		}
	}},
}
