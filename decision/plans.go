package decision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// planBytes is the approximate size of a cached plan.
const (
	planBytes      = 256
	planCacheBytes = 16 << 20
)

// Plans returns the plans of organizations. It is safe for concurrent use.
type Plans struct {
	byName atomic.Pointer[map[string]engine.Plan]

	subs  *registry.Registry
	cache *Cache[string, engine.Plan]
}

func newPlans(subs *registry.Registry, byName map[string]engine.Plan) *Plans {
	p := &Plans{subs: subs}
	p.byName.Store(&byName)
	p.cache = NewCache(planCacheBytes, func(engine.Plan) int64 { return planBytes }, p.Read)
	return p
}

// All returns the plans of the deployment by name. They must not be modified.
func (p *Plans) All() map[string]engine.Plan { return *p.byName.Load() }

// SetPlans replaces the plans of the deployment. One of them must be [engine.FreePlan].
func (s *Service) SetPlans(byName map[string]engine.Plan) {
	s.metrics.countPlans(slices.Sorted(maps.Keys(byName)))
	s.Plans.byName.Store(&byName)
	s.Plans.cache.InvalidateAll()
}

// Of returns org's plan. It returns the free plan if org has no subscription, or if the
// deployment does not know the plan of the subscription.
func (p *Plans) Of(ctx context.Context, turn condition.Turn, org string) (engine.Plan, error) {
	plan, err := p.cache.GetFor(ctx, turn, org)
	if err != nil {
		return engine.Plan{}, fmt.Errorf("looking up the plan: %w", err)
	}
	return plan, nil
}

// Read is [Plans.Of] without the cache. It is for callers that ask for every organization,
// which would otherwise evict the plans in use.
func (p *Plans) Read(ctx context.Context, org string) (engine.Plan, error) {
	sub, err := p.subs.Subscription(ctx, org)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return engine.Plan{}, err
	}
	return p.of(sub), nil
}

// of returns the plan of a subscription, which may be nil.
func (p *Plans) of(sub *storage.Subscription) engine.Plan {
	all := p.All()
	if sub != nil {
		if plan, ok := all[sub.Plan]; ok {
			return plan
		}
	}
	return all[engine.FreePlan]
}

// retention returns how long org's history is kept at a time, or 0 if it is kept forever. The
// history is kept as long as the plan says. Within grace of leaving a plan, the time of that
// plan applies too, and the longer of the two counts. If the deployment does not know a plan,
// limits fall back to the free plan. retention returns an error instead, because removed rows
// cannot be restored.
func (p *Plans) retention(ctx context.Context, org string, at time.Time, grace time.Duration) (time.Duration, error) {
	names := []string{engine.FreePlan}
	sub, err := p.subs.Subscription(ctx, org)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return 0, fmt.Errorf("looking up the plan: %w", err)
	default:
		names[0] = sub.Plan
		for _, past := range sub.Past {
			if at.Sub(past.Until) < grace {
				names = append(names, past.Plan)
			}
		}
	}
	var longest time.Duration
	for _, name := range names {
		plan, ok := p.All()[name]
		switch {
		case !ok:
			return 0, fmt.Errorf("looking up the plan: there is no plan %q", name)
		case plan.RetentionDays <= 0:
			return 0, nil
		}
		longest = max(longest, time.Duration(plan.RetentionDays)*24*time.Hour)
	}
	return longest, nil
}
