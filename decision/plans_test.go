package decision

import (
	"context"
	"errors"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// unreachable is a store whose documents cannot be read.
type unreachable struct{ storage.Documents }

func (unreachable) View(context.Context, func(storage.Reader) error) error {
	return errors.New("unreachable")
}

const day = 24 * time.Hour

func TestDecision_Plans_RetentionIsThePlansAndNeverGuessed(t *testing.T) {
	docs := storagetest.NewMemory().Open()
	plans := newPlans(registry.New(docs), engine.DefaultPlans())
	subscribe := func(org, plan string) {
		must.Do(t, storagetest.PutSubscription(t.Context(), plans.subs, &storage.Subscription{OrganizationID: org, Plan: plan}))
	}
	for plan, days := range map[string]int{"": 7, "pro": 90, "business": 400} {
		org := "acme" + plan
		if plan != "" {
			subscribe(org, plan)
		}
		if got, err := plans.retention(t.Context(), org, time.Now(), 0); err != nil || got != time.Duration(days)*day {
			t.Errorf("retention of plan %q = %v, %v, want %d days", plan, got, err, days)
		}
	}
	subscribe("acme", "unheard-of")
	if got, err := plans.retention(t.Context(), "acme", time.Now(), 0); err == nil {
		t.Errorf("retention of an unknown plan = %v, nil, want an error", got)
	}
	plans.subs = registry.New(unreachable{docs})
	if got, err := plans.retention(t.Context(), "acmepro", time.Now(), 0); err == nil {
		t.Errorf("retention of a store that can't tell = %v, nil, want an error", got)
	}
}

func TestDecision_Plans_RetentionHasAGraceAfterADowngrade(t *testing.T) {
	plans := newPlans(registry.New(storagetest.NewMemory().Open()), engine.DefaultPlans())
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	past := func(plan string, ago time.Duration) storage.PastPlan {
		return storage.PastPlan{Plan: plan, Until: now.Add(-ago)}
	}
	for name, tc := range map[string]struct {
		plan string
		past []storage.PastPlan
		want int // days; -1 is an error
	}{
		"just downgraded":        {"free", []storage.PastPlan{past("business", 0)}, 400},
		"almost a week ago":      {"free", []storage.PastPlan{past("business", 7*day-1)}, 400},
		"a week ago":             {"free", []storage.PastPlan{past("business", 7*day)}, 7},
		"twice":                  {"free", []storage.PastPlan{past("business", 2*day), past("pro", day)}, 400},
		"twice, the first older": {"free", []storage.PastPlan{past("business", 8*day), past("pro", day)}, 90},
		"upgraded":               {"business", []storage.PastPlan{past("free", 0)}, 400},
		"a plan that is gone":    {"free", []storage.PastPlan{past("gold", 0)}, -1},
		"a plan long gone":       {"free", []storage.PastPlan{past("gold", 8*day)}, 7},
	} {
		must.Do(t, storagetest.PutSubscription(t.Context(), plans.subs, &storage.Subscription{OrganizationID: "acme", Plan: tc.plan, Past: tc.past}))
		got, err := plans.retention(t.Context(), "acme", now, 7*day)
		if tc.want < 0 && err == nil || tc.want >= 0 && (err != nil || got != time.Duration(tc.want)*day) {
			t.Errorf("%s: retention = %v, %v, want %d days", name, got, err, tc.want)
		}
	}
}
