package storage

import (
	"cmp"
	"context"

	"writ/engine"
)

// Rules keeps an organization's rules.
type Rules interface {
	// PutRule stores a new rule or replaces the one with its ID. It must return a
	// *LimitError when the rule is new and org has maxRules rules already (0: no
	// limit).
	PutRule(ctx context.Context, org string, r *engine.Rule, maxRules int) error
	// UpdateRule replaces the rule by what f makes of it, atomically: no other
	// update may fall between. f must not change the rule's ID and must not call
	// the store. It returns ErrNotFound or f's error unchanged.
	UpdateRule(ctx context.Context, org, ruleID string, f func(engine.Rule) (engine.Rule, error)) (*engine.Rule, error)
	// DeleteRule removes the rule, or returns ErrNotFound.
	DeleteRule(ctx context.Context, org, ruleID string) error
	// AllRules returns every rule of org in evaluation order: priority
	// descending, then CreatedAt, then ID.
	AllRules(ctx context.Context, org string) ([]engine.Rule, error)
}

// CompareRules orders rules as they are evaluated: priority descending, then
// CreatedAt, then ID.
func CompareRules(a, b engine.Rule) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		a.CreatedAt.Compare(b.CreatedAt),
		cmp.Compare(a.ID, b.ID),
	)
}
