package storage

import (
	"context"
	"time"
)

// Usage counts what plans limit. Its counts are kept, not taken: asking costs
// the same however much there is.
type Usage interface {
	// CountPolicies returns how many policies org has, whatever their versions.
	CountPolicies(ctx context.Context, org string) (int, error)
	// CountAgents returns how many agents org has.
	CountAgents(ctx context.Context, org string) (AgentCount, error)
	// CountRules returns how many rules org has, active or not.
	CountRules(ctx context.Context, org string) (int, error)
	// CountTokens returns how many tokens of org are usable at a time: neither
	// revoked nor expired. These are counted when they are asked for, which costs
	// more the more there are.
	CountTokens(ctx context.Context, org string, at time.Time) (int, error)
	// Meters calls f for each organization that had an intent decided in month,
	// once, with what Metered returns for it. Their order is the backend's. f may
	// call the store; its error ends the walk and is returned.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
}
