package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/engine"
	"writ/engine/condition"
	"writ/storage"
	"writ/storage/registry"
)

// planBytes is the approximate size of a cached plan.
const (
	planBytes      = 256
	planCacheBytes = 16 << 20
)

type plans struct {
	cache *engine.Cache[string, engine.Plan]
	// load reads a plan without the cache, for callers that ask for every organization
	// and would evict the plans in use.
	load func(ctx context.Context, org string) (engine.Plan, error)
}

func newPlans(subs *registry.Registry, byName map[string]engine.Plan) *plans {
	load := func(ctx context.Context, org string) (engine.Plan, error) {
		sub, err := subs.Subscription(ctx, org)
		if errors.Is(err, storage.ErrNotFound) {
			return byName[engine.FreePlan], nil
		}
		if err != nil {
			return engine.Plan{}, err
		}
		plan, ok := byName[sub.Plan]
		if !ok {
			return byName[engine.FreePlan], nil
		}
		return plan, nil
	}
	return &plans{engine.NewCache(planCacheBytes, func(engine.Plan) int64 { return planBytes }, load), load}
}

// of returns org's plan: the free one if it has no subscription, or one to a
// plan that the deployment does not know.
func (p *plans) of(ctx context.Context, turn condition.Turn, org string) (engine.Plan, error) {
	plan, err := p.cache.GetFor(ctx, turn, org)
	if err != nil {
		return engine.Plan{}, fmt.Errorf("looking up the plan: %w", err)
	}
	return plan, nil
}

// Retention returns how long org's history is kept, 0 forever: as long as its plan says
// or, within Config.RetentionGrace of leaving a plan, as long as that plan said, whichever
// is longer. Limits fall back to the free plan if the deployment does not know a plan;
// Retention returns an error instead, because removed rows cannot be restored.
func (s *Server) Retention(ctx context.Context, org string) (time.Duration, error) {
	names := []string{engine.FreePlan}
	sub, err := s.docs.Subscription(ctx, org)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return 0, fmt.Errorf("looking up the plan: %w", err)
	default:
		names[0] = sub.Plan
		for _, past := range sub.Past {
			if s.cfg.Now().Sub(past.Until) < s.cfg.RetentionGrace {
				names = append(names, past.Plan)
			}
		}
	}
	var longest time.Duration
	for _, name := range names {
		plan, ok := s.cfg.Plans[name]
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

func (p *plans) forget(org string) { p.cache.Invalidate(org) }
